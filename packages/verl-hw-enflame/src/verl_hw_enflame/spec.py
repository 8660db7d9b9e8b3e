# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Facts on Enflame GCU.

Marks: [C] confirmed from source, [L] likely, [U] unknown. Nothing here was measured on hardware.
"""

from verl_hw_core import HardwareSpec, SmiTool, Traces

SPEC = HardwareSpec(
    key="enflame",
    display_name="Enflame GCU",
    distribution="verl-hw-enflame",
    device_name="gcu",
    aliases=("gcu",),
    extension_module="torch_gcu",  # autoloaded by torch unless TORCH_DEVICE_BACKEND_AUTOLOAD=0 [C] torch_gcu 2.10
    ccl_backend="eccl",  # [C] torch_gcu 2.10
    flagcx=True,  # [C] FlagCX vendor list; wants int64 switched on, eccl wants it off [L]
    visible_devices_envvar="TOPS_VISIBLE_DEVICES",  # integers or GCU uuids; an empty string hides all [C] torch_gcu
    ray_resources=("GCU", "GPU"),  # no Ray manager; the public plugin uses num_gpus [C]
    ray_noset_envvars=("RAY_EXPERIMENTAL_NOSET_TOPS_VISIBLE_DEVICES",),  # read by nobody in Ray [C]
    # reduce_tensor fits verl; ipc_collect is absent in torch_gcu 2.10, so the check there says no. [C]
    ipc=True,
    capability="module",  # a tuple from the device properties; S60 has major 3 [C]
    allocator_setter="gcu.memory._set_allocator_settings",  # expandable_segments: parsed, warned, always off [C]
    range_module="gcu.topstx",  # [C]
    rollout_env=(  # [C] public Enflame quick start; the last from vendor examples
        ("NCCL_CUMEM_ENABLE", "0"),
        ("TORCH_ECCL_AVOID_RECORD_STREAMS", "1"),
        ("TORCHGCU_INDUCTOR_ENABLE", "0"),
        ("TORCHDYNAMO_DISABLE", "1"),
        ("VLLM_ENABLE_V1_MULTIPROCESSING", "0"),
        ("VLLM_ALL2ALL_BACKEND", "allgather_reducescatter"),
        ("VLLM_WORKER_MULTIPROC_METHOD", "spawn"),
    ),
    # Counts devices through EFML, so that asking does not start the runtime and poison fork. [C] torch_gcu
    launch_env=(("PYTORCH_EFML_BASED_GCU_CHECK", "1"),),
    trainer_options=(  # [C] public Enflame quick start
        ("actor_rollout_ref.rollout.enforce_eager", "True"),
        ("actor_rollout_ref.actor.use_torch_compile", "False"),
        ("actor_rollout_ref.actor.fsdp_config.use_torch_compile", "False"),
        ("actor_rollout_ref.rollout.free_cache_engine", "False"),  # see vllm_sleep
    ),
    # vllm_gcu switches it off; torch_gcu has no memory pools of its own to build it on. [C] vllm_gcu 0.9.2
    vllm_sleep=False,
    cuda_migration="torch_gcu.transfer_to_gcu",  # rewrites torch.cuda, nccl to eccl [C] torch_gcu 2.10
    traces=Traces(
        torch_version_tag="+gcu",  # [U]: costs nothing where the vendor's torch has no such tag
        packages=("torch_gcu",),  # [C]
        device_nodes=("/dev/gcuctl", "/dev/gcu[0-9]*"),  # [C]
        pci_vendor="0x1e36",  # [L]
        smi=(SmiTool(command="efsmi", paths=("/usr/bin", "/usr/sbin")),),  # [C] several monitors
    ),
    detection_rank=10,
)
