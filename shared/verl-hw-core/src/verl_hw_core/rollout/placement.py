# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Where a replica's server runs: on the node, and on the device, of the worker that it belongs to.

The server gets the worker's visibility variables as they are and takes the worker's ordinal, so that no mask has to be
composed and both processes number the devices alike.
"""

import os
from dataclasses import dataclass
from typing import Any

from verl_hw_core.platform.table import PLATFORM_ENVVAR


@dataclass(frozen=True)
class Place:
    """A worker's node and device.

    Attributes:
        node_id: Ray's id of the node.
        ordinal: The device's ordinal among those that the worker sees.
        environment: Variables with which another process on the node sees the same devices and works alike on them.
    """

    node_id: str
    ordinal: int
    environment: dict[str, str]


def describe_worker(_worker: Any) -> Place:
    """Say where this process's device is; runs inside verl's worker."""
    import ray
    from verl.plugin.platform import get_platform

    from verl_hw_core.ray_support.environment import variables

    platform = get_platform()
    spec = getattr(platform, "spec", None)
    masks = [platform.visible_devices_envvar()]
    if spec is not None:
        masks += spec.overriding_visible_envvars
    environment = {name: os.environ[name] for name in masks if name in os.environ}
    if spec is not None:
        # Where the job's own driver started Ray, workers alone have these: both must patch the model alike.
        environment |= variables(spec)
    environment |= dict.fromkeys(platform.ray_noset_envvars(), "1")  # Ray hides all devices from a CPU-only actor
    environment |= platform.rollout_env_vars()
    if spec is None and os.environ.get(PLATFORM_ENVVAR):
        environment[PLATFORM_ENVVAR] = os.environ[PLATFORM_ENVVAR]
    # verl's worker selects this ordinal, and writes it there where Ray gave it the whole node's mask.
    ordinal = int(os.environ.get("LOCAL_RANK", "0"))
    return Place(ray.get_runtime_context().get_node_id(), ordinal, environment)
