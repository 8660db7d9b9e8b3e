# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Every name of other packages that we replace, and every private one that we rely on, as data.

Tests check that each is there in the installed versions, and remove each in turn to see what this file says happens.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """One change of somebody else's code.

    A name is written ``"module:attribute.path"``. ``Class().attribute`` is an attribute that the class's methods give
    an instance; ``; torch>=2.13`` behind a name limits it to these versions, outside of which it may be absent.

    Attributes:
        id: Short name, used in comments and by the doctor.
        targets: Every name that is replaced; of a kernel, the operator that it is registered for.
        reads: Every private name, and public one that could go, that is relied on and not replaced.
        reason: Why the public interface is not enough.
        lost: What is lost where the row cannot be applied, in one phrase.
        if_missing: What happens then beside the warning: ``warn``: the process goes on; ``refuse``: no training engine
            is built, since its numbers would be wrong; ``refuse in Ray``: the same, in Ray's workers only.
        link: The thread or the line upstream.
        removal: When the row can go.
        only_where: On which devices, models or settings it is applied; empty for every training run.
        more_targets: ``"module:function"`` that returns further targets, where packages declare them.
        may_be_absent: The targets are names that the module's code reads and may not have, until we set them.
        applied_by: ``"module:function"`` that applies the row without arguments, where nothing but the chosen platform
            decides how. A reference that arrives from a process in which the row is in force calls it.
    """

    id: str
    targets: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    reason: str
    lost: str
    if_missing: Literal["warn", "refuse", "refuse in Ray"] = "warn"
    link: str
    removal: str
    only_where: str = ""
    more_targets: str = ""
    may_be_absent: bool = False
    applied_by: str = ""


LEDGER: tuple[LedgerRow, ...] = (
    LedgerRow(
        id="platform-table",
        targets=("verl.plugin.platform.platform_manager:PlatformRegistry._platforms",),
        reason="The last package to register a key wins with an INFO line that is normally invisible; NVIDIA is asked "
        "before chips whose CUDA migration shim makes torch.cuda look available; VERL_PLATFORM is not checked before "
        "the first use. The dict is replaced by a PlatformTable.",
        lost="who registers last under one of our names wins, and NVIDIA is asked before our vendors",
        link="https://github.com/verl-project/verl/pull/6086",
        removal="verl refuses a second class under one key and lets a platform state its probe order.",
    ),
    LedgerRow(
        id="platform-singleton",
        reads=("verl.plugin.platform.platform_manager:_current_platform",),
        reason="Read only: a plugin that imports verl.workers while loading fixes the platform before others are "
        "heard, which must be said.",
        lost="a package that fixes verl's platform too early is not named, and workers leave sent replacements "
        "unapplied",
        link="https://github.com/verl-project/verl/pull/6086",
        removal="verl resolves the platform after all plugins have loaded.",
    ),
    LedgerRow(
        id="engine-table",
        reads=("verl.workers.engine.base:EngineRegistry._engines",),
        reason="Registering an engine under a taken key is an assertion that verl then hides; a reload or another "
        "package's engine under our key must be replaced instead.",
        lost="a reload, or another package's engine under our key, ends the registration of ours",
        link="https://github.com/verl-project/verl/pull/7334",
        removal="verl offers a way to replace or remove a registered engine.",
    ),
    LedgerRow(
        id="value-model-attention",
        targets=("transformers.modeling_utils:PreTrainedModel.from_pretrained",),
        reads=("verl.workers.engine.fsdp.transformer_impl:FSDPEngine._build_module",),
        reason="It loads every value model with flash_attention_2, whatever the user set and whether or not flash_attn "
        "is there. While one of our engines builds its model, transformers' from_pretrained is wrapped.",
        lost="models load with an attention that is not there, or that attends within a rank's slice only",
        if_missing="refuse",
        link="https://github.com/verl-project/verl/pull/6119",
        removal="load_valuehead_model takes the implementation from the model configuration.",
        only_where="strategy=fsdp or fsdp2",
    ),
    LedgerRow(
        id="reduce-avg",
        targets=(
            "torch.distributed:all_reduce",
            "torch.distributed:reduce",
            "torch.distributed:reduce_scatter",
            "torch.distributed:reduce_scatter_tensor",
            "torch.distributed:reduce_scatter_single; torch>=2.13",
            "torch.distributed.distributed_c10d:all_reduce",
            "torch.distributed.distributed_c10d:reduce",
            "torch.distributed.distributed_c10d:reduce_scatter",
            "torch.distributed.distributed_c10d:reduce_scatter_tensor",
            "torch.distributed.distributed_c10d:reduce_scatter_single; torch>=2.13",
        ),
        reads=(
            "torch.distributed.distributed_c10d:_rank_not_in_group",
            "torch.distributed.distributed_c10d:_get_default_group",
            "torch.distributed.distributed_c10d:_world",
            "torch.distributed:ProcessGroup._get_backend",
        ),
        reason="verl averages losses (workers/engine_workers.py, trainer/sft_trainer.py) and timings "
        "(utils/profiler/performance.py) with ReduceOp.AVG, which some collective libraries reject or compute wrongly. "
        "torch's reductions are replaced in processes that train on a chosen vendor's device, and act on an AVG in a "
        "group whose backend failed the probe.",
        lost="averages over ranks are what the collective library makes of them",
        if_missing="refuse",
        link="https://github.com/verl-project/verl/pull/7917",
        removal="verl asks the platform whether AVG may be used.",
        applied_by="verl_hw_core.reduction:install",
    ),
    LedgerRow(
        id="grad-scaler-device",
        reads=("verl.workers.engine.fsdp.transformer_impl:FSDPEngine._build_fsdp_module",),
        reason="It builds ShardedGradScaler for CUDA; elsewhere torch disables it. Our engines replace the scaler.",
        lost="FSDP2's averages are not probed, and fp16 trains without loss scaling",
        if_missing="refuse",
        link="https://github.com/pytorch/pytorch/pull/196195",
        removal="verl passes the device to ShardedGradScaler.",
    ),
    LedgerRow(
        id="fsdp1-checkpoint-offload",
        targets=("verl.utils.checkpoint.fsdp_checkpoint_manager:is_cuda_available",),
        reason="FSDP1's sharded checkpoints are gathered on the host only if this constant is true; elsewhere saving "
        "holds a second copy of the shards in device memory.",
        lost="saving an FSDP1 checkpoint needs device memory for a second copy of the shards",
        link="https://github.com/verl-project/verl/issues/6403",
        removal="verl asks the platform.",
    ),
    LedgerRow(
        id="checkpoint-rng",
        targets=("verl.utils.checkpoint.checkpoint_manager:BaseCheckpointManager.load_rng_state",),
        reason="A checkpoint from another chip has no RNG state for this one, which verl passes over in silence, or "
        "one of another layout, on which loading fails.",
        lost="a checkpoint of another chip is loaded without a word on its random state, or fails",
        link="https://github.com/pytorch/pytorch/issues/138329",
        removal="verl warns and goes on.",
    ),
    LedgerRow(
        id="flash-only-attention",
        targets=("verl.workers.engine.fsdp.transformer_impl:apply_monkey_patch",),
        reason="With padding removal it gives Qwen2-VL, Qwen2.5-VL and GLM-4V an attention that calls flash_attn, "
        "whatever implementation the model was loaded with. Without flash attention it is called as for padded runs, "
        "and transformers' own attention, with its mask for packed sequences, stays.",
        lost="vision-language models with padding removal end in an ImportError of flash_attn",
        link="https://github.com/verl-project/verl/pull/6119",
        removal="verl leaves the attention alone where flash attention is not in use.",
        only_where="strategy=fsdp or fsdp2",
        applied_by="verl_hw_core.training.packing:keep_transformers_attention",
    ),
    LedgerRow(
        id="packing-attention",
        reads=(
            "transformers.configuration_utils:PretrainedConfig._attn_implementation",
            "transformers.masking_utils:ALL_MASK_ATTENTION_FUNCTIONS",
        ),
        reason="Which attention a loaded model runs with, and whether transformers builds a mask for it, is in no "
        "public interface; without a mask, sequences of one pack see each other.",
        lost="it is not known whether packed sequences see each other",
        if_missing="refuse",
        link="https://github.com/verl-project/verl/pull/6119",
        removal="transformers has a public name for the attention in force.",
    ),
    LedgerRow(
        id="rmpad-log-probs",
        targets=(
            "verl.utils.torch_functional:log_probs_from_logits_all_rmpad",
            "verl.utils.torch_functional:log_probs_from_logits_response_rmpad",
        ),
        reason="It leaves pad_input undefined on every device but cuda and npu, and its sibling "
        "log_probs_from_logits_response_rmpad imports flash_attn everywhere. Both are replaced.",
        lost="verl's log-probs of packs end in an UnboundLocalError or an ImportError of flash_attn",
        link="https://github.com/verl-project/verl/pull/6119",
        removal="Both take pad_input from verl.utils.attention_utils on every device.",
        applied_by="verl_hw_core.training.log_probs:replace_helpers",
    ),
    LedgerRow(
        id="nested-constructors",
        targets=(
            "torch.nested:nested_tensor",
            "torch.nested:as_nested_tensor",
        ),
        reason="A torch extension may wrap the constructors of torch.nested with a refusal of its device, which verl "
        "undoes for npu only. Replaced only where the wrapper refuses our device and torch's own function does not.",
        lost="jagged tensors cannot be made on the device",
        link="https://github.com/intel/torch-xpu-ops/issues/2424",
        removal="verl undoes such wrappers on every device, or no vendor has one.",
        only_where="a torch extension wraps the constructors with a refusal of its device",
    ),
    LedgerRow(
        id="jagged-conversions",
        targets=(
            "torch:ops.aten._padded_dense_to_jagged_forward",
            "torch:ops.aten._jagged_to_padded_dense_forward",
        ),
        reason="verl pads jagged tensors and trains through it; some stacks lack this operator, or its reverse "
        "_jagged_to_padded_dense_forward. Both get a kernel from other operators, each only where the device fails.",
        lost="padded batches fail, or have wrong numbers",
        if_missing="refuse",
        link="https://github.com/intel/torch-xpu-ops/issues/2905",
        removal="Every vendor's stack has both operators.",
        only_where="the device lacks an operator or computes it wrongly",
    ),
    LedgerRow(
        id="tensordict-synchronization",
        targets=("tensordict.base:TensorDictBase._sync_all",),
        reads=("tensordict.base:_get_available_device_type",),
        reason="After its non-blocking copies to the host tensordict waits for the first device type that it finds, "
        "which may not be the platform's. Replaced only where they differ.",
        lost="batches are read on the host before they have arrived there",
        if_missing="refuse",
        link="https://github.com/pytorch/tensordict/issues/725",
        removal="tensordict waits for the device that it copied from.",
        only_where="tensordict would wait for another device type than the platform's",
    ),
    LedgerRow(
        id="model-patches",
        reads=("transformers.models.qwen3.modeling_qwen3:Qwen3RMSNorm.forward",),
        reason="A vendor's fused kernels, or patches that somebody declared, take the place of operations in the "
        "modelling modules of the model type that is trained (docs/model_patches.md lists all targets). verl has such "
        "patches for npu only.",
        lost="transformers' own code is used",
        link="https://github.com/verl-project/verl/pull/6086",
        removal="transformers' kernel hub serves the vendor's device with kernels that have gradients.",
        only_where="a kernel or a patch is declared for the model type",
        more_targets="verl_hw_core.model_patches.declarations:targets",
    ),
    LedgerRow(
        id="memory-query",
        targets=("verl.utils.profiler.performance:_get_current_mem_info",),
        reason="Engines log the device's memory while they are built; a device module whose mem_get_info or "
        "memory_allocated is missing or raises would end the run there.",
        lost="a device whose memory cannot be asked ends the run while the engine is built",
        link="https://github.com/verl-project/verl/issues/6403",
        removal="verl passes over a memory query that fails.",
        applied_by="verl_hw_core.training.memory:survive_memory_queries",
    ),
    LedgerRow(
        id="pinned-memory",
        targets=(
            "verl.workers.engine.fsdp.transformer_impl:CPUOffloadPolicy",
            "verl.utils.activation_offload:SynchronizedGroupOffloadHandler.offload",
        ),
        reason="verl pins the host memory that it offloads parameters (FSDP2) and activations to. Replaced, with "
        "SynchronizedGroupOffloadHandler.offload, only where pinning raises.",
        lost="offloading to the host fails",
        link="https://github.com/verl-project/verl/issues/6403",
        removal="verl takes pageable memory where the device cannot pin.",
        only_where="host memory cannot be pinned",
    ),
    LedgerRow(
        id="activation-offload-key",
        targets=("verl.utils.activation_offload:_get_unique_tensor_key",),
        reason="It names a saved activation by address and dtype, so that of two views of one memory (a transposed or "
        "an expanded one, as sdpa saves them) only the first is offloaded, and the second comes back with the first "
        "one's values: wrong gradients without a word. Replaced by a key that has shape and stride as well.",
        lost="activations that were offloaded come back with the values of others",
        if_missing="refuse",
        link="https://github.com/verl-project/verl/pull/1220",
        removal="verl's own key tells views of one memory apart.",
        only_where="enable_activation_offload=True",
        applied_by="verl_hw_core.training.memory:offload_views_apart",
    ),
    LedgerRow(
        id="padding-helpers",
        targets=("verl.utils.attention_utils:_get_attention_functions",),
        reason="verl 0.9.0 takes the helpers that remove and restore padding from flash_attn on every device but npu, "
        "so that no batch is converted without it. Replaced only there; 0.9.1 has its own without flash_attn.",
        lost="batches are converted with flash_attn only",
        link="https://github.com/verl-project/verl/pull/6119",
        removal="verl-hw needs verl 0.9.1 or later.",
        only_where="verl 0.9.0 without flash_attn",
        applied_by="verl_hw_core.training.padding:replace_helpers",
    ),
    LedgerRow(
        id="worker-device",
        targets=("verl.single_controller.base.worker:Worker._setup_env_cuda_visible_devices",),
        reason="It selects a device only under NOSET variables of a fixed list, and takes Ray's id for an ordinal: on "
        "a chip that Ray does not know, or knows by another variable, all workers would use device 0.",
        lost="all workers of a node use device 0",
        if_missing="refuse in Ray",
        link="https://github.com/verl-project/verl/pull/7507",
        removal="verl asks the platform for the worker's device.",
    ),
    LedgerRow(
        id="resource-pools",
        targets=("verl.single_controller.ray.base:RayResourcePool.get_placement_groups",),
        reason="A placement group that the cluster cannot place is waited for without end; the cluster is looked at "
        "first.",
        lost="a pool that the cluster cannot place is waited for without end",
        link="https://github.com/verl-project/verl/issues/6741",
        removal="verl checks each pool against the cluster's resources by the platform's resource name.",
    ),
    LedgerRow(
        id="resource-check",
        targets=("verl.single_controller.ray.base:ResourcePoolManager._check_resource_available",),
        reason="It counts the resources GPU and NPU and no other.",
        lost="verl refuses every pool on a chip that Ray calls neither GPU nor NPU",
        link="https://github.com/verl-project/verl/issues/6403",
        removal="verl counts the platform's resource name.",
    ),
    LedgerRow(
        id="worker-environment",
        targets=("verl.single_controller.ray.base:RayClassWithInitArgs.__call__",),
        reads=("verl.single_controller.ray.base:RayClassWithInitArgs()._options",),
        reason="The platform, the vendor's launch variables and our switches must reach workers whoever called "
        "ray.init; a shell export reaches only a Ray that the same shell starts.",
        lost="workers of a running cluster do not get the platform, launch variables and switches",
        link="https://github.com/verl-project/verl/pull/6607",
        removal="verl asks the platform for the environment of its workers.",
    ),
    LedgerRow(
        id="ppo-environment",
        targets=("verl.trainer.constants_ppo:get_ppo_ray_runtime_env",),
        reads=("ray._private.runtime_env.constants:RAY_JOB_CONFIG_JSON_ENV_VAR",),
        reason="The same for every actor of the PPO trainers, those without a device included.",
        lost="actors without a device do not get the platform, launch variables and switches",
        link="https://github.com/verl-project/verl/pull/6607",
        removal="verl asks the platform for the environment of a job.",
    ),
    LedgerRow(
        id="ray-worker",
        reads=("ray._private.worker:global_worker",),
        reason="Read only: the bundle that an actor runs in, the units of a resource without accelerator manager, and "
        "Ray's session folder are in no public interface.",
        lost="it is not known which device Ray gave a worker",
        if_missing="refuse in Ray",
        link="https://github.com/ray-project/ray/issues/40880",
        removal="Ray's runtime context names bundle and units.",
    ),
    LedgerRow(
        id="ray-accelerator-manager",
        reads=("ray._private.accelerators:get_accelerator_manager_for_resource",),
        reason="Read only: which visibility variable Ray reads and writes for a resource.",
        lost="it is not known which visibility variable Ray has set for a worker",
        if_missing="refuse in Ray",
        link="https://github.com/ray-project/ray/issues/66167",
        removal="Ray says so in a public interface.",
    ),
    LedgerRow(
        id="ray-free-resources",
        reads=("ray._private.state:available_resources_per_node",),
        reason="Read only, as verl does: what is free on each node.",
        lost="a pool that the cluster cannot place is waited for without end",
        link="https://github.com/ray-project/ray/issues/40880",
        removal="Ray says so in a public interface.",
    ),
    LedgerRow(
        id="ray-accelerator-ids",
        targets=("ray.runtime_context:RuntimeContext.get_accelerator_ids",),
        reason="verl's rollouts write a worker's ids to the visibility variable of their server, but Ray counts within "
        "the node's mask and has no entry for a custom resource. Replaced in verl workers only: the node's cards.",
        lost="a rollout server may start on another card than its worker's",
        if_missing="refuse in Ray",
        link="https://github.com/ray-project/ray/issues/66167",
        removal="verl asks the platform for the cards of a worker.",
        only_where="workers of verl in Ray",
    ),
    LedgerRow(
        id="rollout-table",
        targets=("verl.workers.rollout.base:_ROLLOUT_REGISTRY",),
        reads=(
            "torch.nn:Module()._buffers",
            "torch.nn:Module()._parameters",
        ),
        reason="The only way to add a rollout's trainer side. The dict is replaced by one that has the bring-up "
        "rollout as well.",
        lost="rollout.name=hf_bringup is unknown to verl",
        link="https://github.com/verl-project/verl/pull/4548",
        removal="verl has a public registration for rollout adapters, as it has for replicas.",
    ),
    LedgerRow(
        id="megatron-import",
        targets=(
            "verl.workers.engine:megatron",
            "verl.workers.engine:mindspeed",
        ),
        reason="verl.workers.engine imports it, and megatron with it, in every process: before a vendor's CUDA "
        "migration can come, and where no Megatron engine is wanted; it also deletes the user's TORCH_CUDA_ARCH_LIST. "
        "A placeholder in sys.modules keeps the import for the moment when a Megatron engine is built.",
        lost="every process imports megatron, before a vendor's CUDA migration",
        link="https://github.com/verl-project/verl/pull/7334",
        removal="verl imports an engine when it is asked for.",
    ),
    LedgerRow(
        id="megatron-engine",
        reads=(
            "verl.workers.engine.megatron:MegatronEngine",
            "verl.workers.engine.megatron:MegatronEngineWithLMHead",
            "verl.workers.engine.megatron:MegatronEngineWithValueHead",
            "verl.workers.engine.megatron:MegatronEngine._build_tf_config",
        ),
        reason="Our Megatron engines are verl's, loaded when one is built; settings are judged and layers chosen where "
        "verl's engine makes Megatron's configuration.",
        lost="no Megatron engine can be built",
        if_missing="refuse",
        link="https://github.com/verl-project/verl/blob/v0.9.0/verl/workers/engine/megatron/transformer_impl.py#L1",
        removal="verl has hooks for other devices in its Megatron engine.",
        only_where="strategy=megatron",
    ),
    LedgerRow(
        id="megatron-local-layers",
        targets=(
            "megatron.core.models.gpt.gpt_layer_specs:TESpecProvider",
            "megatron.core.models.gpt.gpt_layer_specs:TENorm",
            "megatron.core.models.gpt.moe_module_specs:TESpecProvider",
        ),
        reads=("megatron.core.models.gpt.gpt_layer_specs:HAVE_TE",),
        reason="The bridges ask for TransformerEngine's layers unconditionally; Megatron-core's own have other weight "
        "names, a norm that refuses sequence parallelism and an attention that refuses packed batches and reads the "
        "padding mask in another sense than verl writes it. Without TransformerEngine the spec holds our layers.",
        lost="the bridges get layers that are not there, or that read packs and masks wrongly",
        if_missing="refuse",
        link="https://github.com/NVIDIA/Megatron-LM/issues/1049",
        removal="Megatron-core's local layers have these three, and the bridges take them.",
        only_where="strategy=megatron without TransformerEngine",
        may_be_absent=True,
    ),
    LedgerRow(
        id="megatron-router-gemm",
        targets=("megatron.core.transformer.moe.moe_utils:te_general_gemm",),
        reason="It reads te_general_gemm, which the module imports from TransformerEngine and does not define without "
        "it, so that no model with experts runs. The name is given the value None, for which it has a branch.",
        lost="models with experts end in a NameError",
        link="https://github.com/NVIDIA/Megatron-LM/issues/1049",
        removal="Megatron-core defines the name without TransformerEngine.",
        only_where="strategy=megatron without TransformerEngine",
        may_be_absent=True,
    ),
    LedgerRow(
        id="megatron-latent-attention",
        targets=("megatron.core.transformer.multi_latent_attention:TELinear",),
        reason="It takes TELinear and no other class for the down projections of which every rank has the whole; "
        "without TransformerEngine that name is None, and no model with latent attention can be built. Our layer is "
        "put under the name.",
        lost="models with latent attention cannot be built",
        link="https://github.com/NVIDIA/Megatron-LM/issues/1049",
        removal="Megatron-core's latent attention is built without TransformerEngine.",
        only_where="strategy=megatron without TransformerEngine",
        may_be_absent=True,
    ),
    LedgerRow(
        id="megatron-adam-step",
        targets=("megatron.core.optimizer.distrib_optimizer:DistributedOptimizer.load_state_dict",),
        reads=("megatron.core.optimizer.distrib_optimizer:HAVE_APEX_OR_TE",),
        reason="With torch's Adam (no TransformerEngine, no Apex) all parameters get one step tensor, over which the "
        "running process's step is copied: a resumed run goes on with a wrong bias correction and says nothing.",
        lost="a resumed run goes on with a wrong bias correction",
        if_missing="refuse",
        link="https://github.com/NVIDIA/Megatron-LM/issues/1049",
        removal="Megatron-core loads the step of the checkpoint with torch's Adam.",
        only_where="strategy=megatron without TransformerEngine and Apex",
    ),
    LedgerRow(
        id="megatron-adam-state",
        targets=("megatron.core.optimizer.distrib_optimizer:DistributedOptimizer.state_dict",),
        reason="With torch's Adam it asserts that there is a step, which before the first one there is not; loading "
        "calls it as well, so that no new process can resume. Adam's state is made first, with Adam's start values.",
        lost="no new process can resume from a checkpoint",
        link="https://github.com/NVIDIA/Megatron-LM/issues/1049",
        removal="Megatron-core initializes the state of torch's Adam before it loads.",
        only_where="strategy=megatron without TransformerEngine and Apex",
    ),
    LedgerRow(
        id="mbridge-value-head",
        targets=("mbridge.core.safetensor_io:SafeTensorIO.load_some_hf_weight",),
        reason="A critic from a checkpoint without lm_head.weight (tied embeddings, or a token classification model) "
        "cannot be loaded. score.weight is read in its place, else the head stays as initialized.",
        lost="critics cannot be loaded from checkpoints without lm_head.weight",
        link="https://github.com/ISEEKYAN/mbridge/blob/v0.15.1/mbridge/core/safetensor_io.py#L27",
        removal="mbridge loads value heads.",
        only_where="strategy=megatron with mbridge",
    ),
    LedgerRow(
        id="mbridge-unknown-settings",
        targets=("mbridge.core.bridge:Bridge.set_extra_args",),
        reason="override_transformer_config goes to TransformerConfig as it is, which knows other names in every "
        "version of megatron-core; verl 0.9.0 itself passes a name for critics that it does not have. Unknown names "
        "are left out with a warning.",
        lost="a setting that the installed megatron-core does not have ends the run",
        link="https://github.com/ISEEKYAN/mbridge/blob/v0.15.1/mbridge/core/bridge.py#L287",
        removal="mbridge or verl compares the names with the installed TransformerConfig.",
        only_where="strategy=megatron with mbridge",
    ),
    LedgerRow(
        id="mbridge-frozen-router",
        targets=("mbridge.utils.post_creation_callbacks:freeze_moe_router",),
        reason="Megatron-core's router has a bias that is None, which it asks for no gradient: verl's "
        "freeze_moe_router=True ends with an AttributeError. What is None is passed over.",
        lost="freeze_moe_router=True ends with an AttributeError",
        link="https://github.com/ISEEKYAN/mbridge/blob/v0.15.1/mbridge/utils/post_creation_callbacks.py#L18",
        removal="mbridge freezes routers without a bias.",
        only_where="strategy=megatron with mbridge",
    ),
    LedgerRow(
        id="mbridge-tied-mapping",
        targets=("mbridge.core.bridge:Bridge.__init__",),
        reads=("mbridge.core.bridge:Bridge._DIRECT_MAPPING",),
        reason="A model with tied embeddings changes the weight mapping of its bridge's class, and with it that of "
        "every later model of this kind in the process.",
        lost="a model that is built after a tied one is loaded by the tied one's weight mapping",
        if_missing="refuse",
        link="https://github.com/ISEEKYAN/mbridge/blob/v0.15.1/mbridge/models/qwen2.py#L58",
        removal="mbridge keeps the mapping in the instance.",
        only_where="strategy=megatron with mbridge",
    ),
    LedgerRow(
        id="mbridge-architectures",
        reads=(
            "mbridge.core.bridge:_MODEL_REGISTRY",
            "mbridge.core:LLMBridge._CONFIG_MAPPING",
            "mbridge.core:LLMBridge._build_config",
            "mbridge.core:LLMBridge._build_base_config",
            "mbridge.core:LLMBridge._get_gptmodel_args",
            "mbridge.core:LLMBridge._get_transformer_layer_spec",
            "mbridge.core:LLMBridge._model_provider",
            "mbridge.core:LLMBridge._get_hf_shared_weight_keys",
            "mbridge.core:LLMBridge._weight_name_mapping_mcore_to_hf",
            "mbridge.core:LLMBridge._weight_name_mapping_mcore_local_to_global",
            "mbridge.core:LLMBridge._weight_to_mcore_format",
            "mbridge.core:LLMBridge._weight_to_hf_format",
        ),
        reason="A bridge for a model of mbridge overrides these, and so do ours for models that packages register.",
        lost="registered models would be built or loaded by mbridge's rules instead of their own",
        if_missing="refuse",
        link="https://github.com/ISEEKYAN/mbridge/blob/v0.15.1/mbridge/core/bridge.py#L961",
        removal="mbridge has a public interface for models of other packages.",
        only_where="strategy=megatron with mbridge",
    ),
    LedgerRow(
        id="verl-megatron-registries",
        targets=("verl.models.mcore.registry:get_supported_model",),
        reads=(
            "verl.models.mcore.registry:MODEL_CONFIG_CONVERTER_REGISTRY",
            "verl.models.mcore.registry:MODEL_INITIALIZER_REGISTRY",
            "verl.models.mcore.registry:MODEL_FORWARD_REGISTRY",
            "verl.models.mcore.registry:MODEL_WEIGHT_CONVERTER_REGISTRY",
        ),
        reason="verl's registries of Megatron models, which merging checkpoints reads, look names up in an Enum that "
        "takes no members from outside. Names that packages registered are let through.",
        lost="checkpoints of registered models cannot be merged",
        link="https://github.com/verl-project/verl/blob/v0.9.0/verl/models/mcore/registry.py#L226",
        removal="verl's registries take models from outside.",
        only_where="python -m verl_hw_core.megatron.merger",
    ),
    LedgerRow(
        id="verl-megatron-merger",
        targets=("verl.model_merger.megatron_model_merger:MegatronModelMerger._merge_state_dicts",),
        reason="It has one table of weight names for all models and reads no registry. A model that a package "
        "registered is merged by its registration.",
        lost="checkpoints of registered models cannot be merged",
        link="https://github.com/verl-project/verl/blob/v0.9.0/verl/model_merger/megatron_model_merger.py#L175",
        removal="verl merges by its weight converter registry, or by the bridge.",
        only_where="python -m verl_hw_core.megatron.merger",
    ),
    LedgerRow(
        id="weight-sync-group",
        reads=(
            "torch.distributed:Backend._plugins",
            "torch.distributed:ProcessGroupGloo._Options",
            "torch.distributed.distributed_c10d:_DistributedBackendOptions",
        ),
        reason="torch makes a process group only inside the default one, which trainer and separate rollout workers do "
        "not share. The weight sync looks up a vendor's backend in torch's table and makes it as torch does; torch's "
        "tables are not written.",
        lost="weights cannot be sent to separate rollout workers",
        link="https://github.com/pytorch/pytorch/issues/151960",
        removal="torch makes process groups of third-party backends without a default group.",
    ),
    LedgerRow(
        id="weight-sync-name",
        reads=("verl.checkpoint_engine.base:CheckpointEngineRegistry.register",),
        reason="verl's configurations of separate rollout say backend=nccl for every device, and verl's engine of that "
        "name needs cupy and NVIDIA. On a chosen vendor's platform the name stands for our engine over the platform's "
        "collective library.",
        lost="weights cannot be sent to separate rollout workers",
        link="https://github.com/verl-project/verl/issues/6425",
        removal="verl takes the name from the platform.",
    ),
    LedgerRow(
        id="shared-memory-large-weight",
        targets=(
            "verl.workers.rollout.vllm_rollout.bucketed_weight_transfer:BucketedWeightSender._init_buffer",
            "verl.workers.rollout.vllm_rollout.bucketed_weight_transfer:BucketedWeightSender._direct_send_large_weight",
        ),
        reads=("verl.workers.rollout.vllm_rollout.bucketed_weight_transfer:BucketedWeightSender.async_send_weights",),
        reason="Without device IPC it asserts that no weight is larger than the bucket. Two methods that it calls are "
        "replaced so that such a weight goes through a shared memory of its own.",
        lost="a weight larger than the bucket ends in an assertion",
        link="https://github.com/verl-project/verl/issues/6403",
        removal="verl splits or shares large weights without IPC (its source says TODO).",
        only_where="rollout.name=vllm",
    ),
    LedgerRow(
        id="vllm-sleep",
        targets=("verl.workers.config.rollout:RolloutConfig.__post_init__",),
        reason="verl puts vLLM to sleep, at level 2 on every device but NPU, whether or not the chip's vLLM can. Where "
        "it cannot, the configuration is refused.",
        lost="vLLM is put to sleep on a chip where it cannot wake up",
        link="https://github.com/verl-project/verl/pull/3461",
        removal="verl asks the platform for the sleep level.",
        only_where="a chip whose vLLM cannot sleep",
    ),
)
