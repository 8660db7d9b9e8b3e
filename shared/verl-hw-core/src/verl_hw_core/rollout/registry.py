# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What of verl's rollout tables and configuration is changed, when verl imports them and not before.

The rollout is made known to verl; vLLM on a chip whose vLLM cannot sleep is refused with the option to set, before an
engine starts.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.errors import RolloutConfigError
from verl_hw_core.rollout import NAME

ROW = "rollout-table"
"""Ledger row of the adapter's entry; the replica's goes through verl's public ``RolloutReplicaRegistry.register``."""

SLEEP_ROW = "vllm-sleep"
"""Ledger row of the check of sleeping."""

MODE = "async"
_ADAPTER = "verl_hw_core.rollout.replica.BringupAdapter"
_hooked: list[str] = []


def register_when_imported() -> None:
    """Have verl's two rollout tables filled when verl imports them; a second call changes nothing."""
    if _hooked:
        return
    for module, hook in (("verl.workers.rollout.base", _add_adapter), ("verl.workers.rollout.replica", _add_replica)):
        _hooked.append(module)
        upstream.when_imported(module, hook)


@upstream.applies(ROW)
def _add_adapter(base: ModuleType) -> None:
    upstream.replace(ROW, base, "_ROLLOUT_REGISTRY", {**base._ROLLOUT_REGISTRY, (NAME, MODE): _ADAPTER})


def _add_replica(replica: ModuleType) -> None:
    replica.RolloutReplicaRegistry.register(NAME, _load_replica)


def _load_replica() -> type[Any]:
    from verl_hw_core.rollout.replica import BringupReplica

    return BringupReplica


def refuse_sleep(_module: ModuleType) -> None:
    """Have verl's rollout configuration checked when it is made; a second call changes nothing."""
    upstream.apply(SLEEP_ROW)


@upstream.replaces(SLEEP_ROW, "verl.workers.config.rollout:RolloutConfig.__post_init__")
def check(own: Callable[[Any], None], config: Any) -> None:
    """verl's own checks of its ``RolloutConfig``, then that vLLM does not sleep between rollouts.

    Raises:
        RolloutConfigError: It would.
    """
    from verl.plugin.platform import get_platform

    own(config)
    if config.name == "vllm" and config.free_cache_engine:
        raise RolloutConfigError(
            f"rollout.name=vllm with free_cache_engine=True puts vLLM to sleep while the trainer works, and vLLM on "
            f"{get_platform().spec.display_name} has no sleep mode: set "
            "actor_rollout_ref.rollout.free_cache_engine=False, and gpu_memory_utilization so low that vLLM and the "
            "trainer fit side by side"
        )
