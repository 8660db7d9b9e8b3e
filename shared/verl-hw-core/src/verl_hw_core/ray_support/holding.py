# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What Ray gave to this actor, in one record, and the ordinals of these devices in its process.

Ray's public interface names neither the bundle of a placement group that an actor runs in, nor instances of a resource
that has no accelerator manager. Both are read from Ray's worker (ledger row ``ray-worker``).

For the ordinals, which ask neither Ray nor a device, three things are composed:

- the mask that the vendor's runtime obeys in this process (:func:`verl_hw_core.platform.visible_devices.read_mask`);
- the *slots* that Ray assigned: units of the node's resource, counted from 0;
- Ray's *ids* of these slots. They are cards where Ray's manager reads the variable that the runtime obeys, and mean
  nothing to the chip where it reads another one (``CUDA_VISIBLE_DEVICES`` on a chip that Ray does not know).
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.errors import DeviceAssignmentError
from verl_hw_core.platform.visible_devices import Mask

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
    """Return what this actor holds of the first of ``resources``, the preferred one first, that it holds, or None."""
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
            return replace(found, ids=tuple(ids.get(resource, ())), ray_variable=variable)
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


def ordinals(mask: Mask, holding: Holding, device_count: int) -> tuple[int, ...]:
    """Return the ordinals, in this process, of the devices that Ray assigned: one for each slot.

    The mask is the one that the runtime obeys, and the runtime shows ``device_count`` devices to this process.

    Raises:
        DeviceAssignmentError: A device is not visible to this process.
    """
    if holding.slots is None:
        raise DeviceAssignmentError(f"Ray does not tell which units of {holding.resource!r} this actor holds")
    found = tuple(_ordinal(mask, holding, index) for index in range(len(holding.slots)))
    for ordinal in found:
        if ordinal >= device_count:
            raise DeviceAssignmentError(
                f"Ray gave this worker unit {list(holding.slots)} of {holding.resource!r}, but the process sees "
                f"{device_count} devices ({describe(mask)}). Start Ray with as many {holding.resource} as the node "
                "has visible devices, and set the variable for `ray start`, not for the job"
            )
    if len(set(found)) < len(found):
        raise DeviceAssignmentError(
            f"Units {list(holding.slots)} of {holding.resource!r} would be the same device: {describe(mask)}. Correct "
            "the variable, then restart Ray"
        )
    return found


def cards(mask: Mask, ordinals: Sequence[int]) -> tuple[str, ...]:
    """Return the text that names each device in a mask, whatever the mask of this process, in which each must exist."""
    return tuple(str(ordinal) if mask.entries is None else mask.entries[ordinal] for ordinal in ordinals)


def describe(mask: Mask) -> str:
    """Return the mask in words."""
    if mask.value is None:
        return f"{mask.source} is not set"
    beside = "" if mask.filtered_by is None else f" with {mask.filtered_by}"
    return f"{mask.source}{beside} makes {mask.value!r} visible"


def _ordinal(mask: Mask, holding: Holding, index: int) -> int:
    slots = holding.slots or ()
    if mask.filtered_by is not None and mask.filtered_by == holding.ray_variable:
        # Ray's ids count what the mask leaves, and so does the filter that Ray writes.
        return index if len(mask.entries or ()) == len(slots) else slots[index]
    if mask.source != holding.ray_variable or mask.entries is None or len(holding.ids) != len(slots):
        return slots[index]
    if set(holding.ids) == set(mask.entries):
        return mask.entries.index(holding.ids[index])  # Ray has narrowed the mask to this actor's devices
    # The node's mask is in force (NOSET). A part of a card that is only a part of a device here has no entry.
    return mask.entries.index(holding.ids[index]) if holding.ids[index] in mask.entries else slots[index]
