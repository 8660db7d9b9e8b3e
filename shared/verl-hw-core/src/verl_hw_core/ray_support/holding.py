# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What Ray gave to this actor, in one record.

Ray's public interface names neither the bundle of a placement group that an actor runs in, nor instances of a resource
that has no accelerator manager. Both are read from Ray's worker (ledger row ``ray-worker``).
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verl_hw_core import upstream

IDS_ROW = "ray-accelerator-ids"
UNIT_INSTANCE_ENVVAR = "RAY_custom_unit_instance_resources"
"""Ray: custom resources whose single units Ray tells apart, as a comma list; read by the raylet at its start."""


@dataclass(frozen=True)
class Holding:
    """The accelerators that Ray assigned to this actor.

    Attributes:
        resource: Resource name, as ``"GPU"``.
        amount: How much of it; less than 1 when several actors of a bundle share a device.
        slots: Which of the node's units, counted from 0; None where Ray does not tell the units apart.
        ids: Ray's names of these units; empty where Ray has no accelerator manager for the resource.
        ray_variable: Visibility variable that Ray's manager for the resource reads and may write, or None.
        placement_group: Id of the placement group, or None.
        bundle: Index of the bundle in the placement group, or None.
    """

    resource: str
    amount: float
    slots: tuple[int, ...] | None
    ids: tuple[str, ...] = ()
    ray_variable: str | None = None
    placement_group: str | None = None
    bundle: int | None = None


def parse(resource: str, resource_ids: Mapping[str, Sequence[tuple[int, float]]], *, units: bool) -> Holding | None:
    """Find one resource in what Ray's worker says about its resources.

    Args:
        resource: Resource name.
        resource_ids: ``{name: [(unit, amount), ...]}``. In a placement group the name is ``<resource>_group_<id>`` and
            once more ``<resource>_group_<bundle>_<id>``.
        units: Whether Ray tells the units of this resource apart; it numbers them all 0 otherwise.

    Returns:
        The holding without Ray's ids, or None when the actor holds nothing of the resource.
    """
    pattern = re.compile(rf"{re.escape(resource)}(?:_group_(?:(?P<bundle>\d+)_)?(?P<group>[0-9a-f]+))?")
    amounts: dict[int, float] = {}
    group = bundle = None
    for name, assigned in resource_ids.items():
        found = pattern.fullmatch(name)
        if found is None:
            continue
        amounts.update(dict(assigned))
        group = found["group"] or group
        bundle = int(found["bundle"]) if found["bundle"] is not None else bundle
    if not any(amounts.values()):
        return None
    slots = tuple(sorted(slot for slot, amount in amounts.items() if amount)) if units else None
    return Holding(resource, sum(amounts.values()), slots, placement_group=group, bundle=bundle)


def of_this_actor(resources: Sequence[str]) -> Holding | None:
    """Return what this actor holds of the first of ``resources`` that it holds at all, or None.

    Args:
        resources: Candidate names, the preferred one first.
    """
    import ray

    context = ray.get_runtime_context()
    # Ray's own answer, also where a colocated worker of this process has replaced it already.
    ids: Mapping[str, Sequence[str]] = upstream.original(IDS_ROW, type(context), "get_accelerator_ids")(context)
    resource_ids = _worker().core_worker.resource_ids()
    for resource in resources:
        managed = resource in ids
        found = parse(resource, resource_ids, units=managed or resource in _unit_instance_resources())
        if found is not None:
            variable = _ray_variable(resource) if managed else None
            return Holding(
                found.resource,
                found.amount,
                found.slots,
                tuple(ids.get(resource, ())),
                variable,
                found.placement_group,
                found.bundle,
            )
    return None


def session_folder() -> Path:
    """Return the folder of Ray's session on this node, which all actors of the node share."""
    return Path(_worker().node.get_session_dir_path())


def _worker() -> Any:
    from ray._private import worker

    return worker.global_worker


def _unit_instance_resources() -> set[str]:
    # A worker inherits the raylet's environment.
    return {name.strip() for name in os.environ.get(UNIT_INSTANCE_ENVVAR, "").split(",")}


def _ray_variable(resource: str) -> str | None:
    from ray._private import accelerators

    manager = accelerators.get_accelerator_manager_for_resource(resource)
    name: str | None = None if manager is None else manager.get_visible_accelerator_ids_env_var()
    return name
