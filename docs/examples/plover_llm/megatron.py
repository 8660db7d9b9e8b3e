# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Plover for the Megatron backend. Importing this imports no megatron: the layer is imported when it is built."""

from typing import Any

from verl_hw_core.megatron.architectures import MegatronArchitecture, register_architecture

LAYER, MEGATRON_LAYER = "model.layers.{layer}", "decoder.layers.{layer}"

WEIGHTS = {
    "embedding.word_embeddings.weight": "model.embed_tokens.weight",
    "decoder.final_layernorm.weight": "model.norm.weight",
    "output_layer.weight": "lm_head.weight",
    # A norm and the linear layer after it are one module of Megatron's.
    f"{MEGATRON_LAYER}.self_attention.linear_qkv.layer_norm_weight": f"{LAYER}.input_norm.weight",
    f"{MEGATRON_LAYER}.self_attention.linear_qkv.weight": tuple(
        f"{LAYER}.self_attn.{one}_proj.weight" for one in "qkv"
    ),
    f"{MEGATRON_LAYER}.self_attention.linear_qkv.bias": tuple(f"{LAYER}.self_attn.{one}_proj.bias" for one in "qkv"),
    f"{MEGATRON_LAYER}.self_attention.linear_proj.weight": f"{LAYER}.self_attn.o_proj.weight",
    f"{MEGATRON_LAYER}.self_attention.linear_proj.norm_weight": f"{LAYER}.self_attn.out_norm.weight",
    f"{MEGATRON_LAYER}.mlp.linear_fc1.layer_norm_weight": f"{LAYER}.mlp_norm.weight",
    f"{MEGATRON_LAYER}.mlp.linear_fc1.weight": (f"{LAYER}.mlp.gate_proj.weight", f"{LAYER}.mlp.up_proj.weight"),
    f"{MEGATRON_LAYER}.mlp.linear_fc2.weight": f"{LAYER}.mlp.down_proj.weight",
}


def transformer_config(_config: Any) -> dict[str, Any]:
    """Fields that do not follow from the config's usual names; bridges begin with RMSNorm, SwiGLU and no biases."""
    return {"add_qkv_bias": True}


def model_arguments(config: Any) -> dict[str, Any]:
    """Arguments of GPTModel."""
    return {"rotary_percent": config.partial_rotary_factor}


def layer_spec(layer: Any, config: Any) -> Any:
    """The layer's modules."""
    from plover_llm.layers import with_norm_behind_attention

    return with_norm_behind_attention(layer, config)


def add() -> None:
    """Register Plover with verl-hw; an entry point names this function."""
    register_architecture(
        MegatronArchitecture(
            model_type="plover",
            hf_classes=("PloverForCausalLM",),
            transformer_config=transformer_config,
            model_arguments=model_arguments,
            layer_spec=layer_spec,
            weights=WEIGHTS,
        )
    )
