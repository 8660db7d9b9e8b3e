# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The Intel XPU platform on simulated devices."""

from platform_suite import PlatformSuite


class TestIntelPlatform(PlatformSuite):
    key = "intel"
    mask = {"ZE_AFFINITY_MASK": "5,2"}
    cards = ["2", "5"]  # Level Zero keeps device order, whatever the order in the mask
    facts = {
        "class": "IntelPlatform",
        "vendor": "intel",
        "device": "xpu",
        "ccl": "xccl",
        "visible": "ZE_AFFINITY_MASK",
        "noset": ["RAY_EXPERIMENTAL_NOSET_ZE_AFFINITY_MASK", "RAY_EXPERIMENTAL_NOSET_ONEAPI_DEVICE_SELECTOR"],
        "capability": [None, None],
        "collective_module": None,
        "rollout_env": {},
        "ipc": False,  # torch's reduce_tensor has no xpu branch
    }
