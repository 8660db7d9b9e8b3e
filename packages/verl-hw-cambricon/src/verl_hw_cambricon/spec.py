# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Facts on Cambricon MLU.

Marks: [C] confirmed from source, [L] likely, [U] unknown. Nothing here was measured on hardware.
"""

from verl_hw_core import HardwareSpec, SmiTool, Traces

SPEC = HardwareSpec(
    key="cambricon",
    display_name="Cambricon MLU",
    distribution="verl-hw-cambricon",
    device_name="mlu",
    aliases=("mlu",),
    extension_module="torch_mlu",  # PrivateUse1 renamed; no autoload entry in 2024 [C] torch_mlu; newer [U]
    ccl_backend="cncl",  # [C] torch_mlu, DeepSpeed
    flagcx=True,  # vendor name cambricon [C] FlagCX; its AVG on cncl may sum silently [L]
    visible_devices_envvar="MLU_VISIBLE_DEVICES",  # [C] torch_mlu
    # Wins on some newer torch_mlu [C] LightX2V scripts, ray PR revision; which versions [U]. Obeyed when set.
    overriding_visible_envvars=("CN_VISIBLE_DEVICES",),
    ray_resources=("MLU", "GPU"),  # ray PR #66368 [C]; Cambricon's patched Ray [C]. Stock Ray counts no MLU
    ray_noset_envvars=("RAY_EXPERIMENTAL_NOSET_MLU_VISIBLE_DEVICES",),  # patched Ray and the PR only [C]
    # torch_mlu rebuilds handles with the device at index 6 and has ipc_collect [C] torch_mlu 2024; newer [L].
    ipc=True,
    capability="module",  # a tuple; bf16 from major 5 [C] torch_mlu
    allocator_setter="mlu.memory._set_allocator_settings",  # [C] torch_mlu; expandable_segments by version [L]
    range_module="mlu.cnpx",  # [C] torch_mlu, DeepSpeed
    rollout_env=(("TORCH_NCCL_AVOID_RECORD_STREAMS", "1"),),  # [C] runtime_env of the public MLU quick start
    launch_env=(
        ("TORCH_NCCL_AVOID_RECORD_STREAMS", "1"),  # [C] as above
        ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0"),  # [C] as above; Ray's own default from 2.60
    ),
    cuda_migration="torch_mlu.utils.gpu_migration",  # maps cuda to mlu and nccl to cncl [C] torch_mlu, FlagScale
    sdk_version_files=("/usr/local/neuware/version.txt",),  # [C] accelerate, torch_mlu documents
    traces=Traces(
        torch_version_tag="+mlu",  # [C] as in torch 2.9.1+mlu1.29
        packages=("torch_mlu",),  # [C]
        device_nodes=("/dev/cambricon_ctl", "/dev/cambricon_dev[0-9]*"),  # [C] ray PR, container documents
        pci_vendor="0xcabc",  # [C] gpustack runtime
        smi=(SmiTool(command="cnmon", args=("info",), paths=("/usr/bin",)),),  # [C] torch_mlu tests, FlagScale
    ),
    detection_rank=20,
)
