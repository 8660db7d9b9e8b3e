# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A pool that the cluster cannot place is an error at once (ledger rows ``resource-pools`` and ``resource-check``).

Ray keeps a placement group that fits nowhere pending, without a word. verl's own check counts GPU and NPU alone.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.errors import RayResourcesError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform import our_platform
from verl_hw_core.platform.ray_resources import start_options

POOLS_ROW = "resource-pools"
CHECK_ROW = "resource-check"
FREE_ROW = "ray-free-resources"
GRACE_SECONDS = 5.0
"""For nodes that are about to join, and for what an earlier pool gives back."""

Resources = Mapping[str, float]


@upstream.replaces(POOLS_ROW, "verl.single_controller.ray.base:RayResourcePool.get_placement_groups")
def get_placement_groups(
    own: Callable[..., Any], pool: Any, strategy: str = "STRICT_PACK", *args: Any, **kwargs: Any
) -> Any:
    """verl's method of this name, for a pool that the cluster can place."""
    platform = our_platform()
    if platform is not None and pool.pgs is None and pool.use_gpu:
        bundle = {"CPU": float(pool.max_colocate_count), platform.ray_resource_name(): 1.0}
        if pool.accelerator_type is not None:
            bundle[pool.accelerator_type] = 1e-4
        require(platform.spec, bundle, pool.store, packed=strategy == "STRICT_PACK")
    return own(pool, strategy, *args, **kwargs)


@upstream.replaces(CHECK_ROW, "verl.single_controller.ray.base:ResourcePoolManager._check_resource_available")
def check_resource_available(own: Callable[[Any], None], manager: Any) -> None:
    """Count the platform's resource, on a platform of ours."""
    platform = our_platform()
    if platform is None:
        own(manager)
        return
    groups = [count for counts in manager.resource_pool_spec.values() for count in counts]
    require(platform.spec, {platform.ray_resource_name(): 1.0}, groups, packed=False)


def require(spec: HardwareSpec, bundle: Resources, groups: Sequence[int], *, packed: bool) -> None:
    """Wait a few seconds for a cluster that can place the groups, as :func:`fits` says.

    Raises:
        RayResourcesError: The free resources do not suffice.
    """
    deadline = time.monotonic() + GRACE_SECONDS
    while not fits(bundle, groups, [free for _, _, free in _nodes()], packed=packed):
        if time.monotonic() > deadline:
            raise RayResourcesError(_message(spec, bundle, groups, packed))
        time.sleep(0.25)


def fits(bundle: Resources, groups: Sequence[int], nodes: Sequence[Resources], *, packed: bool) -> bool:
    """Return whether the nodes have room for the groups.

    Args:
        bundle: What one bundle, that is one worker, reserves.
        groups: Number of bundles of each placement group.
        nodes: Free resources of each node.
        packed: Whether all bundles of a group must be on one node.
    """
    room = sorted((_room(bundle, node) for node in nodes), reverse=True)
    if not packed:
        return sum(room) >= sum(groups)
    for count in sorted(groups, reverse=True):
        # The fullest node that still has room, so that larger rooms stay for what needs them.
        index = max((index for index, left in enumerate(room) if left >= count), key=lambda i: -room[i], default=None)
        if index is None:
            return False
        room[index] -= count
    return True


def _room(bundle: Resources, node: Resources) -> int:
    """Number of bundles that fit on a node."""
    return min(int(node.get(name, 0.0) / amount + 1e-9) for name, amount in bundle.items())


def _nodes() -> list[tuple[str, Resources, Resources]]:
    """Address, resources and free resources of each live node."""
    import ray
    from ray._private import state

    free = state.available_resources_per_node()
    return [
        (node["NodeManagerAddress"], node["Resources"], free.get(node["NodeID"], {}))
        for node in ray.nodes()
        if node["Alive"]
    ]


def _message(spec: HardwareSpec, bundle: Resources, groups: Sequence[int], packed: bool) -> str:
    nodes = _nodes()
    names = [*bundle, *(name for name in spec.ray_resources if name not in bundle)]
    offers = "; ".join(
        f"{address}: " + ", ".join(f"{free.get(name, 0):g} of {total.get(name, 0):g} {name} free" for name in names)
        for address, total, free in nodes
    )
    where = "each group on one node" if packed else "on any nodes"
    wanted = " + ".join(str(count) for count in groups)
    per = ", ".join(f"{amount:g} {name}" for name, amount in bundle.items())
    needed = max(groups, default=1)
    start = " or ".join(f"`ray start {start_options(name, needed)} ...`" for name in spec.ray_resources)
    text = (
        f"verl wants {wanted} workers on {spec.display_name} ({where}), each with {per}. The nodes of this Ray cluster "
        f"offer: {offers or 'nothing'}. "
    )
    offered = [name for name in spec.ray_resources if any(total.get(name, 0) > 0 for _, total, _ in nodes)]
    if not offered:
        return text + (
            f"Ray does not count this chip by itself: start each node that has devices with {start}, with the number "
            "of its devices. When verl starts Ray itself: +ray_kwargs.ray_init.num_gpus=<devices>"
        )
    device = next(name for name in bundle if name in spec.ray_resources)
    if all(int(total.get("CPU", 0)) < needed * bundle.get("CPU", 0) for _, total, _ in nodes):
        return text + f"The CPUs do not suffice: `ray start --num-cpus={int(needed * bundle['CPU'])} ...`"
    return text + (
        f"Ask for fewer workers (trainer.n_gpus_per_node, trainer.nnodes), end what holds the devices (`ray status`), "
        f"or start nodes with as many as they have: `ray start {start_options(device, needed)} ...`"
    )
