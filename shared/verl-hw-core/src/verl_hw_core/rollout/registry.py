# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Make the rollout known to verl, when verl imports its own tables and not before."""

from types import ModuleType
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.rollout import NAME

ROW = "rollout-table"
"""Ledger row of the adapter's entry; the replica's goes through verl's public ``RolloutReplicaRegistry.register``."""

MODE = "async"
_ADAPTER = "verl_hw_core.rollout.adapter.BringupAdapter"
_hooked: list[str] = []


def register_when_imported() -> None:
    """Have verl's two rollout tables filled when verl imports them; a second call changes nothing."""
    if _hooked:
        return
    for module, hook in (
        ("verl.workers.rollout.base", _add_adapter),
        ("verl.workers.rollout.replica", _add_replica),
    ):
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
