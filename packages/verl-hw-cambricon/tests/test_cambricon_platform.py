# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The Cambricon MLU platform on simulated devices."""

from platform_suite import PlatformSuite


class TestCambriconPlatform(PlatformSuite):
    key = "cambricon"
    mask = {"MLU_VISIBLE_DEVICES": "6,2,3"}
    cards = ["6", "2", "3"]
    ray_resource = "MLU"
    facts = {
        "class": "CambriconPlatform",
        "vendor": "cambricon",
        "device": "mlu",
        "ccl": "cncl",
        "visible": "MLU_VISIBLE_DEVICES",
        "noset": ["RAY_EXPERIMENTAL_NOSET_MLU_VISIBLE_DEVICES"],
        "capability": [5, 0],
        "collective_module": None,
        "rollout_env": {"TORCH_NCCL_AVOID_RECORD_STREAMS": "1"},
        "ipc": False,  # the simulated torch_mlu does not patch reduce_tensor, as the real one does
    }
