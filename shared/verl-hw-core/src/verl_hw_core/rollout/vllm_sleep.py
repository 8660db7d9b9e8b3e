# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""vLLM as rollout on a chip whose vLLM cannot sleep: refused with the option to set, before an engine starts."""

from collections.abc import Callable
from typing import Any

from verl.plugin.platform import get_platform

from verl_hw_core import upstream
from verl_hw_core.errors import RolloutConfigError

ROW = "vllm-sleep"
"""Ledger row of the replacement."""


@upstream.replaces(ROW, "verl.workers.config.rollout:RolloutConfig.__post_init__")
def check(own: Callable[[Any], None], config: Any) -> None:
    """verl's own checks, then ours."""
    own(config)
    refuse_sleep(config)


def refuse_sleep(config: Any) -> None:
    """Refuse a configuration that has vLLM sleep between rollouts.

    Args:
        config: verl's ``RolloutConfig``.

    Raises:
        RolloutConfigError: It does.
    """
    if config.name == "vllm" and config.free_cache_engine:
        raise RolloutConfigError(
            f"rollout.name=vllm with free_cache_engine=True puts vLLM to sleep while the trainer works, and vLLM on "
            f"{get_platform().spec.display_name} has no sleep mode: set "
            "actor_rollout_ref.rollout.free_cache_engine=False, and gpu_memory_utilization so low that vLLM and the "
            "trainer fit side by side"
        )
