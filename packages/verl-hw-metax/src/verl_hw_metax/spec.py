# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Facts on MetaX.

Marks: [C] confirmed from source, [L] likely, [U] unknown. Nothing here was measured on hardware.
"""

from verl_hw_core import HardwareSpec, SmiTool, Traces

SPEC = HardwareSpec(
    key="metax",
    display_name="MetaX",
    distribution="verl-hw-metax",
    device_name="cuda",  # a rebuilt torch whose torch.cuda drives the MetaX runtime [C] mcPytorch
    aliases=("maca",),
    ccl_backend="nccl",  # MCCL behind torch's own name [C] vLLM-metax; documents that say mccl are wrong
    flagcx=True,  # [C] FlagCX vendor list
    visible_devices_envvar="CUDA_VISIBLE_DEVICES",  # the one that Ray sets [C] ray 2.60 metax_gpu.py
    overriding_visible_envvars=("MACA_VISIBLE_DEVICES",),  # read first by MetaX's torch [C] mcPytorch
    ray_resources=("GPU",),  # [C] ray 2.60
    ray_noset_envvars=("RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",),  # [C]; even the value "0" counts as set
    ipc=True,  # torch.cuda's path [C] code, not run; FlagCX has macaIPC
    capability="module",  # [C] API; the values [U]
    allocator_setter="cuda.memory._set_allocator_settings",  # [C]
    range_module="cuda.nvtx",  # [C] Megatron-LM-FL, which guards it
    profiler_module="cuda.profiler",  # [C] names exist
    rollout_env=(  # [C] public MetaX quick start
        ("PYTORCH_ENABLE_SAME_RANK_A100", "1"),
        ("SET_DEVICE_NUMA_PREFERRED", "1"),
        ("MCPYTORCH_DISABLE_PRINT", "1"),
        ("MACA_MPS_MODE", "1"),
    ),
    # [C] public MetaX quick start; it also sets CUDA_DEVICE_MAX_CONNECTIONS=1, which verl sets itself where Megatron
    # wants it and which FSDP2 must not have [C] verl constants_ppo.
    launch_env=(
        ("PYTORCH_ENABLE_SAME_RANK_A100", "1"),
        ("SET_DEVICE_NUMA_PREFERRED", "1"),
        ("MCPYTORCH_DISABLE_PRINT", "1"),
        ("MACA_MPS_MODE", "1"),
        ("MCCL_MAX_NCHANNELS", "16"),
    ),
    sdk_version_files=("/opt/maca/Version.txt",),  # [C] vLLM-metax
    traces=Traces(
        torch_version_tag="+metax",  # [C] as in torch 2.10.0+metax3.8.0.7; torch.version.cuda is set as well
        packages=("pymxsml",),  # [C] Ray and RLinf tell MetaX by it
        device_nodes=("/dev/mxcd",),  # [C]
        pci_vendor="0x9999",  # [C]
        smi=(
            SmiTool(
                command="mx-smi",
                args=("-L",),  # one line a card [C]
                paths=("/opt/mxdriver/bin", "/opt/maca/bin", "/usr/local/maca/bin"),  # [C] mxtop, collectors
            ),
        ),
    ),
    detection_rank=30,
)
