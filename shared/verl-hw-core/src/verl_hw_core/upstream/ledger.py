# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Every private name of verl that we touch, as data: a test checks that each target is still there and still needed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LedgerRow:
    """One place in somebody else's code.

    Attributes:
        id: Short name, used in comments and by the doctor.
        target: ``"module:attribute.path"`` of the private or replaced name.
        reason: Why the public interface is not enough.
        versions: Versions in which the target was read, as a specifier of the distribution.
        link: Where upstream discusses it.
        removal: When the row can go.
        applied_by: ``"module:function"`` that applies the row without arguments, where nothing but the chosen platform
            decides how. A reference that arrives from a process in which the row is in force calls it.
    """

    id: str
    target: str
    reason: str
    versions: str
    link: str
    removal: str
    applied_by: str = ""


LEDGER: tuple[LedgerRow, ...] = (
    LedgerRow(
        id="platform-table",
        target="verl.plugin.platform.platform_manager:PlatformRegistry._platforms",
        reason="The last package to register a key wins with an INFO line that is normally invisible; NVIDIA is asked "
        "before chips whose CUDA migration shim makes torch.cuda look available; VERL_PLATFORM is not checked before "
        "the first use. The dict is replaced by a PlatformTable.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/6086",
        removal="verl refuses a second class under one key and lets a platform state its probe order.",
    ),
    LedgerRow(
        id="platform-singleton",
        target="verl.plugin.platform.platform_manager:_current_platform",
        reason="Read only: a plugin that imports verl.workers while loading fixes the platform before others are "
        "heard, which must be said.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/6086",
        removal="verl resolves the platform after all plugins have loaded.",
    ),
    LedgerRow(
        id="engine-table",
        target="verl.workers.engine.base:EngineRegistry._engines",
        reason="Registering an engine under a taken key is an assertion that verl then hides; a reload or another "
        "package's engine under our key must be replaced instead.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/7334",
        removal="verl offers a way to replace or remove a registered engine.",
    ),
    LedgerRow(
        id="value-model-attention",
        target="verl.utils.model:load_valuehead_model",
        reason="It loads every value model with flash_attention_2, whatever the user set and whether or not flash_attn "
        "is there. While one of our engines builds its model, transformers' from_pretrained is wrapped.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/6119",
        removal="load_valuehead_model takes the implementation from the model configuration.",
    ),
    LedgerRow(
        id="reduce-avg",
        target="torch.distributed:all_reduce",
        reason="verl averages losses (workers/engine_workers.py, trainer/sft_trainer.py) and timings "
        "(utils/profiler/performance.py) with ReduceOp.AVG, which some collective libraries reject or compute wrongly. "
        "torch's reductions are replaced in processes that train on a chosen vendor's device, and act on an AVG in a "
        "group whose backend failed the probe.",
        versions="torch>=2.8",
        link="https://github.com/verl-project/verl/pull/7917",
        removal="verl asks the platform whether AVG may be used.",
        applied_by="verl_hw_core.reduction:install",
    ),
    LedgerRow(
        id="grad-scaler-device",
        target="verl.workers.engine.fsdp.transformer_impl:FSDPEngine._build_fsdp_module",
        reason="It builds ShardedGradScaler for CUDA; elsewhere torch disables it. Our engines replace the scaler.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/pytorch/pytorch/pull/196195",
        removal="verl passes the device to ShardedGradScaler.",
    ),
    LedgerRow(
        id="fsdp1-checkpoint-offload",
        target="verl.utils.checkpoint.fsdp_checkpoint_manager:is_cuda_available",
        reason="FSDP1's sharded checkpoints are gathered on the host only if this constant is true; elsewhere saving "
        "holds a second copy of the shards in device memory.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/issues/6403",
        removal="verl asks the platform.",
    ),
    LedgerRow(
        id="checkpoint-rng",
        target="verl.utils.checkpoint.checkpoint_manager:BaseCheckpointManager.load_rng_state",
        reason="A checkpoint from another chip has no RNG state for this one, which verl passes over in silence, or "
        "one of another layout, on which loading fails.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/pytorch/pytorch/issues/138329",
        removal="verl warns and goes on.",
    ),
    LedgerRow(
        id="flash-only-attention",
        target="verl.workers.engine.fsdp.transformer_impl:apply_monkey_patch",
        reason="With padding removal it gives Qwen2-VL, Qwen2.5-VL and GLM-4V an attention that calls flash_attn, "
        "whatever implementation the model was loaded with. Without flash attention it is called as for padded runs, "
        "and transformers' own attention, with its mask for packed sequences, stays.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/6119",
        removal="verl leaves the attention alone where flash attention is not in use.",
        applied_by="verl_hw_core.training.packing:keep_transformers_attention",
    ),
    LedgerRow(
        id="rmpad-log-probs",
        target="verl.utils.torch_functional:log_probs_from_logits_all_rmpad",
        reason="It leaves pad_input undefined on every device but cuda and npu, and its sibling "
        "log_probs_from_logits_response_rmpad imports flash_attn everywhere. Both are replaced.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/6119",
        removal="Both take pad_input from verl.utils.attention_utils on every device.",
        applied_by="verl_hw_core.training.log_probs:replace_helpers",
    ),
    LedgerRow(
        id="nested-constructors",
        target="torch:nested.nested_tensor",
        reason="A torch extension may wrap the constructors of torch.nested with a refusal of its device, which verl "
        "undoes for npu only. Replaced only where the wrapper refuses our device and torch's own function does not.",
        versions="torch>=2.8",
        link="https://github.com/intel/torch-xpu-ops/issues/2424",
        removal="verl undoes such wrappers on every device, or no vendor has one.",
    ),
    LedgerRow(
        id="jagged-conversions",
        target="torch:ops.aten._padded_dense_to_jagged_forward",
        reason="verl pads jagged tensors and trains through it; some stacks lack this operator, or its reverse "
        "_jagged_to_padded_dense_forward. Both get a kernel from other operators, each only where the device fails.",
        versions="torch>=2.8",
        link="https://github.com/intel/torch-xpu-ops/issues/2905",
        removal="Every vendor's stack has both operators.",
    ),
    LedgerRow(
        id="tensordict-synchronization",
        target="tensordict.base:TensorDictBase._sync_all",
        reason="After its non-blocking copies to the host tensordict waits for the first device type that it finds, "
        "which may not be the platform's. Replaced only where they differ.",
        versions="tensordict>=0.10",
        link="https://github.com/pytorch/tensordict/issues/725",
        removal="tensordict waits for the device that it copied from.",
    ),
    LedgerRow(
        id="model-patches",
        target="transformers.models.qwen3.modeling_qwen3:Qwen3RMSNorm.forward",
        reason="A vendor's fused kernels, or patches that somebody declared, take the place of operations in the "
        "modelling modules of the model type that is trained (docs/model_patches.md lists all targets). verl has such "
        "patches for npu only.",
        versions="transformers>=4.55",
        link="https://github.com/verl-project/verl/pull/6086",
        removal="transformers' kernel hub serves the vendor's device with kernels that have gradients.",
    ),
    LedgerRow(
        id="memory-query",
        target="verl.utils.profiler.performance:_get_current_mem_info",
        reason="Engines log the device's memory while they are built; a device module whose mem_get_info or "
        "memory_allocated is missing or raises would end the run there.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/issues/6403",
        removal="verl passes over a memory query that fails.",
        applied_by="verl_hw_core.training.memory:survive_memory_queries",
    ),
    LedgerRow(
        id="pinned-memory",
        target="verl.workers.engine.fsdp.transformer_impl:CPUOffloadPolicy",
        reason="verl pins the host memory that it offloads parameters (FSDP2) and activations to. Replaced, with "
        "SynchronizedGroupOffloadHandler.offload, only where pinning raises.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/issues/6403",
        removal="verl takes pageable memory where the device cannot pin.",
    ),
    LedgerRow(
        id="activation-offload-key",
        target="verl.utils.activation_offload:_get_unique_tensor_key",
        reason="It names a saved activation by address and dtype, so that of two views of one memory (a transposed or "
        "an expanded one, as sdpa saves them) only the first is offloaded, and the second comes back with the first "
        "one's values: wrong gradients without a word. Replaced by a key that has shape and stride as well.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/1220",
        removal="verl's own key tells views of one memory apart.",
        applied_by="verl_hw_core.training.memory:offload_views_apart",
    ),
    LedgerRow(
        id="padding-helpers",
        target="verl.utils.attention_utils:_get_attention_functions",
        reason="verl 0.9.0 takes the helpers that remove and restore padding from flash_attn on every device but npu, "
        "so that no batch is converted without it. Replaced only there; 0.9.1 has its own without flash_attn.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/6119",
        removal="verl-hw needs verl 0.9.1 or later.",
        applied_by="verl_hw_core.training.padding:replace_helpers",
    ),
    LedgerRow(
        id="worker-device",
        target="verl.single_controller.base.worker:Worker._setup_env_cuda_visible_devices",
        reason="It selects a device only under NOSET variables of a fixed list, and takes Ray's id for an ordinal: on "
        "a chip that Ray does not know, or knows by another variable, all workers would use device 0.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/7507",
        removal="verl asks the platform for the worker's device.",
    ),
    LedgerRow(
        id="resource-pools",
        target="verl.single_controller.ray.base:RayResourcePool.get_placement_groups",
        reason="A placement group that the cluster cannot place is waited for without end; the cluster is looked at "
        "first.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/issues/6741",
        removal="verl checks each pool against the cluster's resources by the platform's resource name.",
    ),
    LedgerRow(
        id="resource-check",
        target="verl.single_controller.ray.base:ResourcePoolManager._check_resource_available",
        reason="It counts the resources GPU and NPU and no other.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/issues/6403",
        removal="verl counts the platform's resource name.",
    ),
    LedgerRow(
        id="worker-environment",
        target="verl.single_controller.ray.base:RayClassWithInitArgs.__call__",
        reason="The platform, the vendor's launch variables and our switches must reach workers whoever called "
        "ray.init; a shell export reaches only a Ray that the same shell starts.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/6607",
        removal="verl asks the platform for the environment of its workers.",
    ),
    LedgerRow(
        id="ppo-environment",
        target="verl.trainer.constants_ppo:get_ppo_ray_runtime_env",
        reason="The same for every actor of the PPO trainers, those without a device included.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/6607",
        removal="verl asks the platform for the environment of a job.",
    ),
    LedgerRow(
        id="ray-worker",
        target="ray._private.worker:global_worker",
        reason="Read only: the bundle that an actor runs in, the units of a resource without accelerator manager, and "
        "Ray's session folder are in no public interface.",
        versions="ray>=2.41,<2.61",
        link="https://github.com/ray-project/ray/issues/40880",
        removal="Ray's runtime context names bundle and units.",
    ),
    LedgerRow(
        id="ray-accelerator-manager",
        target="ray._private.accelerators:get_accelerator_manager_for_resource",
        reason="Read only: which visibility variable Ray reads and writes for a resource.",
        versions="ray>=2.41,<2.61",
        link="https://github.com/ray-project/ray/issues/66167",
        removal="Ray says so in a public interface.",
    ),
    LedgerRow(
        id="ray-free-resources",
        target="ray._private.state:available_resources_per_node",
        reason="Read only, as verl does: what is free on each node.",
        versions="ray>=2.41,<2.61",
        link="https://github.com/ray-project/ray/issues/40880",
        removal="Ray says so in a public interface.",
    ),
    LedgerRow(
        id="ray-accelerator-ids",
        target="ray.runtime_context:RuntimeContext.get_accelerator_ids",
        reason="verl's rollouts write a worker's ids to the visibility variable of their server, but Ray counts within "
        "the node's mask and has no entry for a custom resource. Replaced in verl workers only: the node's cards.",
        versions="ray>=2.41,<2.61",
        link="https://github.com/ray-project/ray/issues/66167",
        removal="verl asks the platform for the cards of a worker.",
    ),
    LedgerRow(
        id="rollout-table",
        target="verl.workers.rollout.base:_ROLLOUT_REGISTRY",
        reason="The only way to add a rollout's trainer side. The dict is replaced by one that has the bring-up "
        "rollout as well.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/4548",
        removal="verl has a public registration for rollout adapters, as it has for replicas.",
    ),
    LedgerRow(
        id="megatron-import",
        target="verl.workers.engine.megatron:MegatronEngineWithLMHead",
        reason="verl.workers.engine imports it, and megatron with it, in every process: before a vendor's CUDA "
        "migration can come, and where no Megatron engine is wanted; it also deletes the user's TORCH_CUDA_ARCH_LIST. "
        "A placeholder in sys.modules keeps the import for the moment when a Megatron engine is built.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/7334",
        removal="verl imports an engine when it is asked for.",
    ),
    LedgerRow(
        id="megatron-local-layers",
        target="megatron.core.models.gpt.gpt_layer_specs:get_gpt_layer_with_transformer_engine_spec",
        reason="The bridges ask for TransformerEngine's layers unconditionally; Megatron-core's own have other weight "
        "names, a norm that refuses sequence parallelism and an attention that refuses packed batches and reads the "
        "padding mask in another sense than verl writes it. Without TransformerEngine the spec holds our layers.",
        versions="megatron-core>=0.16,<0.17",
        link="https://github.com/NVIDIA/Megatron-LM/issues/1049",
        removal="Megatron-core's local layers have these three, and the bridges take them.",
    ),
    LedgerRow(
        id="megatron-router-gemm",
        target="megatron.core.transformer.moe.moe_utils:RouterGatingLinearFunction.forward",
        reason="It reads te_general_gemm, which the module imports from TransformerEngine and does not define without "
        "it, so that no model with experts runs. The name is given the value None, for which it has a branch.",
        versions="megatron-core>=0.16,<0.17",
        link="https://github.com/NVIDIA/Megatron-LM/issues/1049",
        removal="Megatron-core defines the name without TransformerEngine.",
    ),
    LedgerRow(
        id="megatron-latent-attention",
        target="megatron.core.transformer.multi_latent_attention:MLASelfAttention.__init__",
        reason="It takes TELinear and no other class for the down projections of which every rank has the whole; "
        "without TransformerEngine that name is None, and no model with latent attention can be built. Our layer is "
        "put under the name.",
        versions="megatron-core>=0.16,<0.17",
        link="https://github.com/NVIDIA/Megatron-LM/issues/1049",
        removal="Megatron-core's latent attention is built without TransformerEngine.",
    ),
    LedgerRow(
        id="megatron-adam-step",
        target="megatron.core.optimizer.distrib_optimizer:DistributedOptimizer.load_state_dict",
        reason="With torch's Adam (no TransformerEngine, no Apex) all parameters get one step tensor, over which the "
        "running process's step is copied: a resumed run goes on with a wrong bias correction and says nothing.",
        versions="megatron-core>=0.16,<0.17",
        link="https://github.com/NVIDIA/Megatron-LM/issues/1049",
        removal="Megatron-core loads the step of the checkpoint with torch's Adam.",
    ),
    LedgerRow(
        id="megatron-adam-state",
        target="megatron.core.optimizer.distrib_optimizer:DistributedOptimizer.state_dict",
        reason="With torch's Adam it asserts that there is a step, which before the first one there is not; loading "
        "calls it as well, so that no new process can resume. Adam's state is made first, with Adam's start values.",
        versions="megatron-core>=0.16,<0.17",
        link="https://github.com/NVIDIA/Megatron-LM/issues/1049",
        removal="Megatron-core initializes the state of torch's Adam before it loads.",
    ),
    LedgerRow(
        id="mbridge-value-head",
        target="mbridge.core.safetensor_io:SafeTensorIO.load_some_hf_weight",
        reason="A critic from a checkpoint without lm_head.weight (tied embeddings, or a token classification model) "
        "cannot be loaded. score.weight is read in its place, else the head stays as initialized.",
        versions="mbridge>=0.15,<0.16",
        link="https://github.com/ISEEKYAN/mbridge",
        removal="mbridge loads value heads.",
    ),
    LedgerRow(
        id="mbridge-unknown-settings",
        target="mbridge.core.bridge:Bridge.set_extra_args",
        reason="override_transformer_config goes to TransformerConfig as it is, which knows other names in every "
        "version of megatron-core; verl 0.9.0 itself passes a name for critics that it does not have. Unknown names "
        "are left out with a warning.",
        versions="mbridge>=0.15,<0.16",
        link="https://github.com/ISEEKYAN/mbridge",
        removal="mbridge or verl compares the names with the installed TransformerConfig.",
    ),
    LedgerRow(
        id="mbridge-frozen-router",
        target="mbridge.utils.post_creation_callbacks:freeze_moe_router",
        reason="Megatron-core's router has a bias that is None, which it asks for no gradient: verl's "
        "freeze_moe_router=True ends with an AttributeError. What is None is passed over.",
        versions="mbridge>=0.15,<0.16",
        link="https://github.com/ISEEKYAN/mbridge",
        removal="mbridge freezes routers without a bias.",
    ),
    LedgerRow(
        id="mbridge-tied-mapping",
        target="mbridge.core.bridge:Bridge.__init__",
        reason="A model with tied embeddings changes the weight mapping of its bridge's class, and with it that of "
        "every later model of this kind in the process.",
        versions="mbridge>=0.15,<0.16",
        link="https://github.com/ISEEKYAN/mbridge",
        removal="mbridge keeps the mapping in the instance.",
    ),
    LedgerRow(
        id="verl-megatron-registries",
        target="verl.models.mcore.registry:get_supported_model",
        reason="verl's registries of Megatron models, which merging checkpoints reads, look names up in an Enum that "
        "takes no members from outside. Names that packages registered are let through.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl",
        removal="verl's registries take models from outside.",
    ),
    LedgerRow(
        id="verl-megatron-merger",
        target="verl.model_merger.megatron_model_merger:MegatronModelMerger._merge_state_dicts",
        reason="It has one table of weight names for all models and reads no registry. A model that a package "
        "registered is merged by its registration.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl",
        removal="verl merges by its weight converter registry, or by the bridge.",
    ),
    LedgerRow(
        id="weight-sync-group",
        target="torch.distributed:Backend._plugins",
        reason="torch makes a process group only inside the default one, which trainer and separate rollout workers do "
        "not share. The weight sync looks up a vendor's backend in torch's table and makes it as torch does; torch's "
        "tables are not written.",
        versions="torch>=2.8",
        link="https://github.com/pytorch/pytorch/issues/151960",
        removal="torch makes process groups of third-party backends without a default group.",
    ),
    LedgerRow(
        id="weight-sync-name",
        target="verl.checkpoint_engine.base:CheckpointEngineRegistry._registry",
        reason="verl's configurations of separate rollout say backend=nccl for every device, and verl's engine of that "
        "name needs cupy and NVIDIA. On a chosen vendor's platform the name stands for our engine over the platform's "
        "collective library.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/issues/6425",
        removal="verl takes the name from the platform.",
    ),
    LedgerRow(
        id="shared-memory-large-weight",
        target="verl.workers.rollout.vllm_rollout.bucketed_weight_transfer:BucketedWeightSender.async_send_weights",
        reason="Without device IPC it asserts that no weight is larger than the bucket. Two methods that it calls are "
        "replaced so that such a weight goes through a shared memory of its own.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/issues/6403",
        removal="verl splits or shares large weights without IPC (its source says TODO).",
    ),
    LedgerRow(
        id="vllm-sleep",
        target="verl.workers.config.rollout:RolloutConfig.__post_init__",
        reason="verl puts vLLM to sleep, at level 2 on every device but NPU, whether or not the chip's vLLM can. Where "
        "it cannot, the configuration is refused.",
        versions="verl>=0.9,<0.11",
        link="https://github.com/verl-project/verl/pull/3461",
        removal="verl asks the platform for the sleep level.",
    ),
)
