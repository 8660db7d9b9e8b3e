# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on an accelerator: shards are gathered on the host, RNG state of another chip is passed over aloud."""

import logging
from collections.abc import Callable
from typing import Any

from verl_hw_core import upstream

logger = logging.getLogger("verl_hw_core")


def care_for_checkpoints() -> None:
    """Apply what verl's checkpoint managers need; a second call changes nothing."""
    _gather_on_the_host()
    upstream.apply("checkpoint-rng")


@upstream.applies("fsdp1-checkpoint-offload")
def _gather_on_the_host() -> None:
    from verl.utils.checkpoint import fsdp_checkpoint_manager

    upstream.replace("fsdp1-checkpoint-offload", fsdp_checkpoint_manager, "is_cuda_available", True)


@upstream.replaces("checkpoint-rng", "verl.utils.checkpoint.checkpoint_manager:BaseCheckpointManager.load_rng_state")
def load_rng_state(load: Callable[[dict[str, Any]], None], rng_state: dict[str, Any]) -> None:
    """Restore the random states that fit this machine, and say which one does not.

    Args:
        load: verl's own.
        rng_state: What verl saved: states of ``cpu``, ``numpy``, ``random`` and of the device it was saved on.
    """
    from verl.plugin.platform import get_platform

    platform = get_platform()
    own = platform.device_name
    load({name: state for name, state in rng_state.items() if name != own})
    if own not in rng_state:
        others = sorted(set(rng_state) - {"cpu", "numpy", "random"})
        _say(own, f"it was saved on {', '.join(others) or 'a machine without accelerator'}")
        return
    try:
        platform.device_module.set_rng_state(rng_state[own])
    except Exception as error:  # noqa: BLE001 - a state of another layout may be refused with any exception
        _say(own, str(error))


def _say(device: str, why: str) -> None:
    logger.warning(
        "The checkpoint's random state does not fit device %s (%s): training goes on with the current one, so dropout "
        "and sampling will differ from an uninterrupted run",
        *(device, why),
    )
