# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A verl worker selects its own device (ledger rows ``worker-device`` and ``ray-accelerator-ids``).

No visibility variable is written: the worker keeps the mask that it was started with and selects by ordinal.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from verl_hw_core import load_report, upstream
from verl_hw_core.errors import DeviceAssignmentError
from verl_hw_core.facts import vendors
from verl_hw_core.platform import AcceleratorPlatform
from verl_hw_core.platform.table import PLATFORM_ENVVAR
from verl_hw_core.platform.visible_devices import Mask, check_count, local_ordinal, read_mask
from verl_hw_core.ray_support import claims
from verl_hw_core.ray_support import holding as holdings
from verl_hw_core.ray_support.holding import IDS_ROW, Holding

WORKER_ROW = "worker-device"


@dataclass(frozen=True)
class WorkerDevices:
    """The devices of a worker.

    Attributes:
        resource: Ray's resource name.
        ordinals: Their ordinals in this process; verl uses the first.
        cards: Their names in a mask of the node.
        ids: Ray's names of them, where it has any.
    """

    resource: str
    ordinals: tuple[int, ...]
    cards: tuple[str, ...]
    ids: tuple[str, ...] = ()


@upstream.replaces(WORKER_ROW, "verl.single_controller.base.worker:Worker._setup_env_cuda_visible_devices")
def set_up(own: Callable[[Any], None], worker: Any) -> None:
    """Select the device that Ray gave to this worker, on a platform of ours."""
    import ray
    from verl.plugin.platform import get_platform

    platform = get_platform()
    if not ray.is_initialized():
        own(worker)
        return
    if not isinstance(platform, AcceleratorPlatform):
        _say_if_a_device_is_held(platform.vendor_name)
        own(worker)
        return
    devices = find(platform)
    if devices is None:
        return
    os.environ["LOCAL_RANK"] = str(devices.ordinals[0])  # as verl's own function; verl reads it right after
    platform.set_device(devices.ordinals[0])
    answer_for_this_worker(devices)


def find(platform: AcceleratorPlatform) -> WorkerDevices | None:
    """Return the devices that this Ray actor is to use, None when Ray gave it none.

    Raises:
        DeviceAssignmentError: The actor's device is not visible to it, or is another bundle's.
        VisibleDevicesError: The visibility mask is malformed or names a device that is not there.
    """
    holding = holdings.of_this_actor(platform.spec.ray_resources)
    if holding is None:
        return None
    mask = read_mask(platform.spec)
    count = platform.device_count()
    check_count(mask, count)
    if holding.slots is None:
        everything = holdings.cards(mask, range(count))
        first = (holding.bundle or 0) % max(count, 1)  # so that ranks and devices are in one order where they can be
        card = _node_claims().take(_bundle(holding), everything[first:] + everything[:first])
        return WorkerDevices(holding.resource, (everything.index(card),), (card,))
    ordinals = holdings.ordinals(mask, holding, count)
    found = holdings.cards(mask, ordinals)
    _claim(holding, mask, found)
    return WorkerDevices(holding.resource, ordinals, found, holding.ids)


def device_index(platform: AcceleratorPlatform, accelerator_ids: Sequence[str]) -> int:
    """Return the ordinal of the first device: the platform's hook ``ray_device_index``.

    Ray's ids of this actor mean what :func:`set_up` selects, whatever Ray counts. Any others are physical ids, which
    is what verl says of them.

    Raises:
        DeviceAssignmentError: The device is not visible to this process.
        VisibleDevicesError: The same, where the mask says so, or the mask is malformed.
    """
    import ray

    wanted = tuple(str(one) for one in accelerator_ids)
    devices = find(platform) if ray.is_initialized() else None
    if devices is not None and wanted in (devices.ids, devices.cards):
        return devices.ordinals[0]
    mask, count = read_mask(platform.spec), platform.device_count()
    check_count(mask, count)
    ordinal = local_ordinal(mask, wanted[0])
    if ordinal >= count:
        raise DeviceAssignmentError(
            f"Ray's device id {wanted[0]!r} is none of the {count} devices that this process sees "
            f"({holdings.describe(mask)}). Start Ray with as many devices as the node has visible, and set the "
            "variable for `ray start`, not for the job"
        )
    return ordinal


def answer_for_this_worker(devices: WorkerDevices) -> None:
    """Let Ray's ``get_accelerator_ids()`` name the worker's cards in this process.

    verl hands them to the rollout server, which writes them to the visibility variable: so they must be the node's
    cards, whatever Ray counts. Ray has no such entry at all for a custom resource.
    """
    _answers.setdefault(devices.resource, devices.cards)
    upstream.apply(IDS_ROW)


_answers: dict[str, tuple[str, ...]] = {}


@upstream.replaces(IDS_ROW, "ray.runtime_context:RuntimeContext.get_accelerator_ids")
def get_accelerator_ids(own: Callable[[Any], dict[str, list[str]]], context: Any) -> dict[str, list[str]]:
    """Ray's method of this name, with the cards of this worker."""
    return {**own(context), **{resource: list(cards) for resource, cards in _answers.items()}}


def _say_if_a_device_is_held(chosen: str) -> None:
    """Warn in a worker that holds a chip of ours while verl runs on another platform; verl says that at DEBUG."""
    for spec in vendors.specs():
        names = [name for name in spec.ray_resources if name not in ("GPU", "NPU")]
        holding = holdings.of_this_actor(names)
        if holding is not None:
            load_report.report(
                spec.distribution,
                "setting up a Ray worker",
                f"the worker holds {holding.amount:g} {holding.resource} but verl's platform is {chosen!r}",
                f"Set {PLATFORM_ENVVAR}={spec.key} where the job is started; verl-hw detect, on this node, says what "
                "was found",
            )


def _claim(holding: Holding, mask: Mask, found: tuple[str, ...]) -> None:
    """Refuse a card that another bundle of this node uses; an actor outside placement groups is Ray's business."""
    if holding.placement_group is None:
        return
    for slot, card in zip(holding.slots or (), found, strict=True):
        place = holding.bundle if holding.bundle is not None else "any"
        _node_claims().take(f"{holding.placement_group}/{place}/{slot}", (card,))


def _bundle(holding: Holding) -> str:
    """Name of the bundle, which stands for one device."""
    import ray
    from ray.util import get_current_placement_group

    group = get_current_placement_group()
    if holding.bundle is None or group is None:
        raise DeviceAssignmentError(
            f"{holding.resource!r} is a plain custom resource of this Ray cluster, so the device of an actor follows "
            "from its bundle in a placement group, and this actor runs in none. Use verl's worker groups, or let Ray "
            f"tell the devices apart: {holdings.UNIT_INSTANCE_ENVVAR}={holding.resource} ray start ..."
        )
    size = group.bundle_specs[holding.bundle].get(holding.resource)
    if size != 1:
        raise DeviceAssignmentError(
            f"Bundle {holding.bundle} of placement group {holding.placement_group} on node "
            f"{ray.get_runtime_context().get_node_id()} holds {size} {holding.resource}; with a plain custom resource "
            f"it must be 1, one device. Or let Ray tell the devices apart: {holdings.UNIT_INSTANCE_ENVVAR}="
            f"{holding.resource} ray start ..."
        )
    return f"{holding.placement_group}/{holding.bundle}"


def _node_claims() -> claims.Claims:
    import ray

    node = ray.get_runtime_context().get_node_id()
    # By node: Ray's test clusters have several nodes in one session folder.
    return claims.Claims(holdings.session_folder() / "verl_hw" / f"devices-{node}.json", _exists)


def _exists(holder: str) -> bool:
    """Whether the placement group of a claim has not been removed."""
    from ray import PlacementGroupID
    from ray.util.placement_group import PlacementGroup, placement_group_table

    group = placement_group_table(PlacementGroup(PlacementGroupID(bytes.fromhex(holder.partition("/")[0]))))
    return bool(group.get("state", "REMOVED") != "REMOVED")
