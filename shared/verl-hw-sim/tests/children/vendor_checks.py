# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The fakes of a vendor's stack: what is there, and what is not."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from checks import raises

import verl_hw_sim
from verl_hw_sim.records import Call
from verl_hw_sim.simulation import active_simulation

PROFILE = active_simulation().profile
D = PROFILE.device_name
MODULE = getattr(torch, D)
ABSENT = {
    "mlu": (),
    "gcu": ("ipc_collect",),
    "xpu": ("ipc_collect", "default_stream", "reset_max_memory_allocated", "memory._set_allocator_settings"),
    "cuda": (),
}
# What verl and torch ask of a device module.
PRESENT = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "default_generators",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "random",
    "reset_peak_memory_stats",
    "seed",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]
HAS = {
    "mlu": ("ipc_collect", "default_stream", "memory._set_allocator_settings", "cnpx.range_push"),
    "gcu": ("default_stream", "memory._set_allocator_settings", "topstx.range_push"),
    "xpu": (),
    "cuda": ("ipc_collect", "default_stream", "memory._set_allocator_settings", "nvtx.range_push", "cudart"),
}


def _has(name):
    place = MODULE
    for part in name.split("."):
        if not hasattr(place, part):
            return False
        place = getattr(place, part)
    return True


def check_names():
    assert [name for name in ABSENT[D] if _has(name)] == []
    assert [name for name in (*PRESENT, *HAS[D]) if not _has(name)] == []
    assert torch.get_device_module(D) is MODULE
    assert sys.modules[f"torch.{D}"] is MODULE
    others = {"mlu", "gcu"} - {D}
    assert not any(hasattr(torch, name) for name in others)


def check_capability():
    capability = MODULE.get_device_capability(0)
    if D == "xpu":
        assert isinstance(capability, dict)
        assert capability["has_fp64"] is True
    else:
        assert [type(part) for part in capability] == [int, int]


def check_recorded_calls():
    verl_hw_sim.clear_recorded_calls()
    expected = []
    if PROFILE.range_module is not None:
        ranges = getattr(MODULE, PROFILE.range_module)
        assert ranges.range_push("step") == 0
        assert ranges.range_push("inner") == 1
        ranges.range_pop()
        ranges.range_pop()
        names = ("range_push", "range_push", "range_pop", "range_pop")
        arguments = (("step",), ("inner",), (), ())
        expected += [
            Call(f"{PROFILE.range_module}.{name}", given) for name, given in zip(names, arguments, strict=True)
        ]
    if _has("memory._set_allocator_settings"):
        MODULE.memory._set_allocator_settings("expandable_segments:True")
        expected.append(Call("memory._set_allocator_settings", ("expandable_segments:True",)))
    MODULE.empty_cache()
    expected.append(Call("empty_cache"))
    if _has("ipc_collect"):
        MODULE.ipc_collect()
        expected.append(Call("ipc_collect"))
    assert list(verl_hw_sim.recorded_calls()) == expected
    verl_hw_sim.clear_recorded_calls()
    assert verl_hw_sim.recorded_calls() == ()


def check_extension_module():
    for name, device in (("torch_mlu", "mlu"), ("torch_gcu", "gcu")):
        spec = importlib.util.find_spec(name)
        assert (spec is not None) == (device == D), name
    if PROFILE.extension_module is not None:
        extension = importlib.import_module(PROFILE.extension_module)
        assert extension.__spec__.name == PROFILE.extension_module
        assert extension.__version__
        assert getattr(extension, D) is MODULE


def check_torch_build_markers():
    assert bool(getattr(torch.version, "xpu", None)) == (D == "xpu")
    assert ("+metax" in torch.__version__) == (D == "cuda")
    if D == "cuda":
        assert torch.version.cuda == "11.6"
        assert torch.__version__ >= (2, 0)  # still a version, not a mere string


def check_collective_library():
    assert dist.is_available()
    name = PROFILE.ccl_backend
    assert {"mlu": "cncl", "gcu": "eccl", "xpu": "xccl", "cuda": "nccl"}[D] == name
    assert dist.get_default_backend_for_device(D) == name
    assert dist.is_backend_available(name)
    assert dist.is_nccl_available() == (D == "cuda" or torch.distributed.is_nccl_available())
    if D == "xpu":
        assert dist.is_xccl_available()


def check_fake_host():
    root = Path(os.environ["VERL_HW_PROBE_ROOT"])
    nodes = {
        "mlu": ("dev/cambricon_ctl", "dev/cambricon_dev0", "dev/cambricon_dev1"),
        "gcu": ("dev/gcuctl", "dev/gcu0", "dev/gcu1"),
        "xpu": ("dev/dri/renderD128", "dev/dri/renderD129"),
        "cuda": ("dev/mxcd", "dev/dri/renderD128"),
    }[D]
    assert [node for node in nodes if not (root / node).exists()] == []
    vendor_id = {"mlu": "0xcabc", "gcu": "0x1e36", "xpu": "0x8086", "cuda": "0x9999"}[D]
    assert (root / "sys/class/drm/renderD129/device/vendor").read_text().strip() == vendor_id
    assert len(list((root / "sys/bus/pci/devices").iterdir())) == 2
    tool = {"mlu": "usr/bin/cnmon", "gcu": "usr/bin/efsmi", "xpu": "usr/bin/xpu-smi", "cuda": "opt/mxdriver/bin/mx-smi"}
    listing = subprocess.run([root / tool[D]], capture_output=True, text=True, check=True).stdout
    assert len(listing.splitlines()) == 3


def check_private_names_are_not_called():
    raises(AttributeError, lambda: MODULE.no_such_name, f"torch.{D}")
