# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A vendor that does not exist, for tests of the core."""

from verl_hw_core import HardwareSpec

DEVICE = "acmedev"


def spec(**changes) -> HardwareSpec:
    """Facts of the Acme NPU, with ``changes``."""
    facts = {
        "key": "acme",
        "display_name": "Acme NPU",
        "distribution": "verl-hw-acme",
        "device_name": DEVICE,
        "ccl_backend": "accl",
        "visible_devices_envvar": "ACME_VISIBLE_DEVICES",
        "ray_resources": ("GPU",),
        "allocator_setter": f"{DEVICE}.memory._set_allocator_settings",
        "range_module": f"{DEVICE}.ranges",
        "profiler_module": f"{DEVICE}.profiler",
        "ipc": True,
        "rollout_env": (("ACME_FAST", "1"), ("ACME_SAFE", "0")),
    }
    return HardwareSpec(**{**facts, **changes})
