# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Under which name the connected cluster counts the device, and how to start one that does."""

import json

from verl_hw_core.facts.hardware import HardwareSpec

_names: dict[tuple[str, str], str] = {}


def resource_name(spec: HardwareSpec) -> str:
    """Return the first of the vendor's candidates that the connected cluster offers.

    It is the first of all when Ray is not connected or offers none.
    """
    import ray

    if not ray.is_initialized():
        return spec.ray_resources[0]
    key = (spec.key, ray.get_runtime_context().gcs_address)
    if key not in _names:
        offered = ray.cluster_resources()
        found = next((name for name in spec.ray_resources if offered.get(name, 0) > 0), None)
        if found is None:
            return spec.ray_resources[0]  # not kept: a node with devices may join
        _names[key] = found
    return _names[key]


def start_options(resource: str, devices: int) -> str:
    """Return the options of ``ray start`` that make a node offer so many devices."""
    if resource == "GPU":
        return f"--num-gpus={devices}"
    return f"--resources='{json.dumps({resource: devices})}'"
