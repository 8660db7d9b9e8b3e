# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Facts on Intel XPU.

Marks: [C] confirmed from source, [L] likely, [U] unknown. Nothing here was measured on hardware.
"""

from verl_hw_core import HardwareSpec, SmiTool, Traces

SPEC = HardwareSpec(
    key="intel",
    display_name="Intel XPU",
    distribution="verl-hw-intel",
    device_name="xpu",
    aliases=("xpu",),
    # Stock torch has torch.xpu; IPEX (end of life, archived 2026-03-30) is imported only where torch lacks it. [C]
    # Source: intel-extension-for-pytorch README and issue #867; torch/xpu.
    extension_module="intel_extension_for_pytorch",
    ccl_backend="xccl",  # built into torch, default for xpu [C] torch 2.13, torch-xpu-ops
    flagcx=False,  # FlagCX reads xpu-smi as Kunlunxin and has no Intel adaptor [C] FlagCX vendor list
    # Read by Ray 2.60, vLLM (PR #21815), DeepSpeed [C]; ONEAPI_DEVICE_SELECTOR filters beside it, in other words.
    visible_devices_envvar="ZE_AFFINITY_MASK",
    filtering_envvars=("ONEAPI_DEVICE_SELECTOR",),
    mask_order="ascending",  # Level Zero keeps device order whatever the order in the mask [L] level-zero #86, spec #1
    subdevice_mask=True,  # "0.1" names a tile [C] Level Zero; torch's own parser takes integers only [C]
    ray_resources=("GPU",),  # [C] ray 2.60 intel_gpu.py; counting needs dpctl, or ray start --num-gpus=N
    ray_noset_envvars=(
        "RAY_EXPERIMENTAL_NOSET_ZE_AFFINITY_MASK",  # [C] ray 2.60
        "RAY_EXPERIMENTAL_NOSET_ONEAPI_DEVICE_SELECTOR",  # [C] older ray; the only one verl's own list knows
    ),
    ipc=False,  # torch's reduce_tensor has no xpu branch and torch.xpu no ipc_collect [C] torch 2.13
    capability="none",  # torch.xpu.get_device_capability returns a dict [C] torch 2.13
    # Shared accelerator allocator configuration; torch.xpu.memory has no setter of its own. [C] torch 2.13
    allocator_setter="_C._accelerator_setAllocatorSettings",
    range_module="profiler.itt",  # [C] torch 2.13; a build without ITT raises, which means no marker
    launch_env=(
        # Prestarted Ray workers each hold a Level Zero context. [C] verl PR #6607
        ("RAY_NUM_PRESTART_PYTHON_WORKERS", "0"),
        # oneCCL between processes with one card each hangs or falls back to gloo [L] vLLM PR #53076: workers see the
        # whole node and select their card by ordinal.
        ("RAY_EXPERIMENTAL_NOSET_ZE_AFFINITY_MASK", "1"),
        ("RAY_EXPERIMENTAL_NOSET_ONEAPI_DEVICE_SELECTOR", "1"),
    ),
    traces=Traces(
        # torch.xpu exists in every stock torch; only a build for XPU means anything. [C] torch 2.13
        torch_version_tag="+xpu",
        torch_version_attribute="xpu",
        # Integrated graphics carry the same PCI id, so it only supports the build's word. [C]
        pci_vendor="0x8086",
        pci_identifies_vendor=False,
        # Kunlunxin ships a tool of the same name. [C] xpumanager README; FlagCX, FlagGems
        smi=(SmiTool(command="xpu-smi", args=("discovery",), identifies_vendor=False),),
    ),
    detection_rank=40,
)
