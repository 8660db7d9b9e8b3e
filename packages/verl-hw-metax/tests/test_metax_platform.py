# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The MetaX platform on simulated devices."""

from platform_suite import PlatformSuite
from platformkit import needs_cpu_torch


@needs_cpu_torch
class TestMetaxPlatform(PlatformSuite):
    key = "metax"
    mask = {"CUDA_VISIBLE_DEVICES": "0,1,2", "MACA_VISIBLE_DEVICES": "6,7"}
    cards = ["6", "7"]  # MACA_VISIBLE_DEVICES wins
    facts = {
        "class": "MetaxPlatform",
        "vendor": "metax",
        "device": "cuda",
        "ccl": "nccl",
        "visible": "CUDA_VISIBLE_DEVICES",
        "noset": ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"],
        "capability": [8, 0],
        "collective_module": None,
        "rollout_env": {
            "PYTORCH_ENABLE_SAME_RANK_A100": "1",
            "SET_DEVICE_NUMA_PREFERRED": "1",
            "MCPYTORCH_DISABLE_PRINT": "1",
            "MACA_MPS_MODE": "1",
        },
        "ipc": False,  # the simulated device has no CUDA IPC handle
    }


def test_expandable_segments_are_not_passed_on(monkeypatch):
    """MetaX's guide unsets the allocator variable; a wrong setting would be worse than none."""
    monkeypatch.setenv("VERL_USE_EXTERNAL_PLUGINS", "none")
    from verl_hw_core.platform import vendor_module
    from verl_hw_metax.platform import MetaxPlatform

    passed = []
    monkeypatch.setattr(vendor_module, "call", lambda spec, name, settings, **_: passed.append(settings))
    platform = MetaxPlatform()
    platform.set_allocator_settings("expandable_segments:True")
    platform.set_allocator_settings("max_split_size_mb:512")
    assert passed == ["max_split_size_mb:512"]
