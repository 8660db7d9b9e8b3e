# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Transformer settings of a Megatron run without TransformerEngine: kernels that exist for CUDA only are off."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from verl_hw_core.errors import UnsupportedModelSettingError

# Each needs TransformerEngine, Apex or a kernel compiled for CUDA; jit-fused ones need torch.compile for the device.
_CUDA_KERNELS = (
    "apply_rope_fusion",
    "bias_activation_fusion",
    "bias_dropout_fusion",
    "gradient_accumulation_fusion",
    "masked_softmax_fusion",
    "persist_layer_norm",
    "memory_efficient_layer_norm",
    "moe_permute_fusion",
    "moe_router_fusion",
    "use_fused_weighted_squared_relu",
    "tp_comm_overlap",
    "cross_entropy_loss_fusion",
)
# Switching these off would train something else than was asked for.
_NO_SUBSTITUTE = ("fp8", "fp4", "delay_wgrad_compute", "enable_cuda_graph", "cpu_offloading")


def require_possible(engine_config: Any, device: str) -> None:
    """Refuse, before anything is built, what verl's Megatron engine has for CUDA only, on another torch device type.

    Raises:
        UnsupportedModelSettingError: The configuration, verl's ``McoreEngineConfig``, asks for it.
    """
    if engine_config.use_fused_kernels and device != "cuda":
        raise UnsupportedModelSettingError(
            f"use_fused_kernels=True: verl's kernels for Megatron take CUDA tensors only, not {device}. Set it to False"
        )


def require_local(engine_config: Any) -> None:
    """Refuse what cannot be had without TransformerEngine.

    Raises:
        UnsupportedModelSettingError: The configuration, verl's ``McoreEngineConfig``, asks for it.
    """
    wanted = [name for name in ("dynamic_context_parallel", "use_megatron_fsdp") if getattr(engine_config, name)]
    if wanted:
        raise UnsupportedModelSettingError(
            f"{', '.join(wanted)}: Megatron has this with TransformerEngine only, which is missing. Set it to False"
        )
    if engine_config.dist_ckpt_optim_fully_reshardable:
        raise UnsupportedModelSettingError(
            "dist_ckpt_optim_fully_reshardable=True: Megatron cannot load such optimizer state into torch's Adam, "
            "which it uses without TransformerEngine. Set it to False"
        )


def require_equal_experts(experts: int | None, expert_parallel: int) -> None:
    """Refuse, before the model is built, experts (None if it has none) that the ranks cannot share equally.

    Raises:
        UnsupportedModelSettingError: They cannot, with this ``expert_model_parallel_size`` of verl's.
    """
    if experts is None or experts % expert_parallel == 0:
        return
    possible = ", ".join(str(size) for size in range(1, experts + 1) if experts % size == 0)
    raise UnsupportedModelSettingError(
        f"expert_model_parallel_size={expert_parallel}: Megatron gives every rank the same number of experts, and the "
        f"model has {experts}. Set actor_rollout_ref.actor.megatron.expert_model_parallel_size "
        f"(critic.megatron. for a critic, engine. for SFT) to one of {possible}"
    )


def require_same_routing(hf_config: Any, tf_config: Any) -> None:
    """Refuse, before the model is built, a router whose weights for the chosen experts are not the model's.

    A bridge has one rule for a model type, where the checkpoint's config has a choice (``norm_topk_prob``).

    Raises:
        UnsupportedModelSettingError: The numbers would be others.
    """
    normalized = getattr(hf_config, "norm_topk_prob", None)
    if normalized is None or tf_config.moe_router_topk == 1:
        return
    softmax = tf_config.moe_router_score_function == "softmax"
    if normalized == (not tf_config.moe_router_pre_softmax if softmax else True):
        return
    remedy = (
        f"+actor_rollout_ref.actor.megatron.override_transformer_config.moe_router_pre_softmax={not normalized}"
        if softmax
        else "actor_rollout_ref.actor.strategy=fsdp2: Megatron has no such router"
    )
    raise UnsupportedModelSettingError(
        f"norm_topk_prob={normalized} in the model's config, but the bridge of {hf_config.model_type} would build a "
        f"router that does {'not ' if normalized else ''}normalize the weights of the chosen experts. Set {remedy}"
    )


def torch_adam_overrides(optimizer_config: Any) -> dict[str, Any]:
    """Return verl's ``override_optimizer_config`` for torch's Adam, which keeps its moments in fp32.

    verl switches TransformerEngine's precision-aware optimizer on for fp16, whatever the configuration says.

    Raises:
        UnsupportedModelSettingError: The user asked for that optimizer in verl's ``McoreOptimizerConfig``.
    """
    overrides = dict(optimizer_config.override_optimizer_config or {})
    name = "use_precision_aware_optimizer"
    if overrides.get(name, getattr(optimizer_config, name, False)):
        raise UnsupportedModelSettingError(
            f"{name}=True: Megatron has this optimizer with TransformerEngine only, which is missing. Set it to False"
        )
    return {**overrides, name: False}


def has_transformer_engine() -> bool:
    """Whether Megatron-core found a TransformerEngine, NVIDIA's or one that stands in for it."""
    from megatron.core.models.gpt import gpt_layer_specs

    return bool(gpt_layer_specs.HAVE_TE)


def transformer_overrides(
    requested: Mapping[str, Any] = MappingProxyType({}), *, sequence_parallel: bool = False
) -> dict[str, Any]:
    """Return the user's ``override_transformer_config``, as :func:`local_overrides` where there are our layers only.

    Raises:
        UnsupportedModelSettingError: A setting has no counterpart without TransformerEngine.
    """
    from megatron.core.transformer import TransformerConfig

    if has_transformer_engine():
        return dict(requested)
    known = frozenset(field.name for field in dataclasses.fields(TransformerConfig))
    return local_overrides(requested, known, sequence_parallel)


def local_overrides(requested: Mapping[str, Any], known: frozenset[str], sequence_parallel: bool) -> dict[str, Any]:
    """Return verl's ``override_transformer_config`` for layers from torch operations.

    ``requested`` is what the user set, ``known`` the fields of the installed Megatron's TransformerConfig,
    ``sequence_parallel`` verl's own setting, which mbridge does not read.

    Raises:
        UnsupportedModelSettingError: A setting has no counterpart without TransformerEngine.
    """
    impossible = {name: requested[name] for name in _NO_SUBSTITUTE if requested.get(name)}
    if impossible:
        found = ", ".join(f"{name}={value!r}" for name, value in impossible.items())
        raise UnsupportedModelSettingError(
            f"Megatron without TransformerEngine has no {found}: remove it from override_transformer_config"
        )
    off = {name: False for name in _CUDA_KERNELS if name in known}
    # One name for all engines of a process: Megatron writes it to variables and refuses a second value.
    return {"sequence_parallel": sequence_parallel, **requested, **off, "attention_backend": "local"}
