# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Registrations as packages would write them: the guide's example, a model with experts, one with latent attention."""

from dataclasses import replace

from verl_hw_core.megatron.architectures import MegatronArchitecture, register_architecture, registered

LAYER, OURS = "model.layers.{layer}", "decoder.layers.{layer}"
DIRECT = {
    "embedding.word_embeddings.weight": "model.embed_tokens.weight",
    "decoder.final_layernorm.weight": "model.norm.weight",
    "output_layer.weight": "lm_head.weight",
}
ATTENTION = {
    f"{OURS}.self_attention.linear_proj.weight": f"{LAYER}.self_attn.o_proj.weight",
    f"{OURS}.self_attention.linear_qkv.layer_norm_weight": f"{LAYER}.input_layernorm.weight",
    f"{OURS}.self_attention.linear_qkv.weight": tuple(f"{LAYER}.self_attn.{one}_proj.weight" for one in "qkv"),
    f"{OURS}.self_attention.q_layernorm.weight": f"{LAYER}.self_attn.q_norm.weight",
    f"{OURS}.self_attention.k_layernorm.weight": f"{LAYER}.self_attn.k_norm.weight",
}
EXPERTS = {
    f"{OURS}.pre_mlp_layernorm.weight": f"{LAYER}.post_attention_layernorm.weight",
    f"{OURS}.mlp.router.weight": f"{LAYER}.mlp.gate.weight",
    f"{OURS}.mlp.experts.linear_fc1.weight{{expert}}": tuple(
        f"{LAYER}.mlp.experts.{{expert}}.{one}_proj.weight" for one in ("gate", "up")
    ),
    f"{OURS}.mlp.experts.linear_fc2.weight{{expert}}": f"{LAYER}.mlp.experts.{{expert}}.down_proj.weight",
}
DENSE = {
    f"{OURS}.mlp.linear_fc1.layer_norm_weight": f"{LAYER}.post_attention_layernorm.weight",
    f"{OURS}.mlp.linear_fc1.weight": tuple(f"{LAYER}.mlp.{one}_proj.weight" for one in ("gate", "up")),
    f"{OURS}.mlp.linear_fc2.weight": f"{LAYER}.mlp.down_proj.weight",
}
LATENT = {
    f"{OURS}.input_layernorm.weight": f"{LAYER}.input_layernorm.weight",
    f"{OURS}.self_attention.linear_proj.weight": f"{LAYER}.self_attn.o_proj.weight",
    f"{OURS}.self_attention.linear_q_down_proj.weight": f"{LAYER}.self_attn.q_a_proj.weight",
    f"{OURS}.self_attention.linear_q_up_proj.layer_norm_weight": f"{LAYER}.self_attn.q_a_layernorm.weight",
    f"{OURS}.self_attention.linear_q_up_proj.weight": f"{LAYER}.self_attn.q_b_proj.weight",
    f"{OURS}.self_attention.linear_kv_down_proj.weight": f"{LAYER}.self_attn.kv_a_proj_with_mqa.weight",
    f"{OURS}.self_attention.linear_kv_up_proj.layer_norm_weight": f"{LAYER}.self_attn.kv_a_layernorm.weight",
    f"{OURS}.self_attention.linear_kv_up_proj.weight": f"{LAYER}.self_attn.kv_b_proj.weight",
    f"{OURS}.mlp.router.expert_bias": f"{LAYER}.mlp.gate.e_score_correction_bias",
    f"{OURS}.mlp.shared_experts.linear_fc1.weight": tuple(
        f"{LAYER}.mlp.shared_experts.{one}_proj.weight" for one in ("gate", "up")
    ),
    f"{OURS}.mlp.shared_experts.linear_fc2.weight": f"{LAYER}.mlp.shared_experts.down_proj.weight",
}


def moe_config(config) -> dict:
    """As a package would write it for a model like Qwen3-MoE."""
    return {
        "qk_layernorm": True,
        "num_moe_experts": config.num_experts,
        "moe_ffn_hidden_size": config.moe_intermediate_size,
        "moe_router_topk": config.num_experts_per_tok,
        "moe_router_pre_softmax": False,
    }


def latent_config(config) -> dict:
    """As a package would write it for a model like DeepSeek V3."""
    return {
        "qk_layernorm": True,
        "q_lora_rank": config.q_lora_rank,
        "kv_lora_rank": config.kv_lora_rank,
        "qk_head_dim": config.qk_nope_head_dim,
        "qk_pos_emb_head_dim": config.qk_rope_head_dim,
        "v_head_dim": config.v_head_dim,
        "kv_channels": config.v_head_dim,
        "rotary_base": config.rope_parameters["rope_theta"],
        "rope_type": "rope",
        "rotary_scaling_factor": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "num_moe_experts": config.n_routed_experts,
        "moe_ffn_hidden_size": config.moe_intermediate_size,
        "moe_layer_freq": [int(index >= config.first_k_dense_replace) for index in range(config.num_hidden_layers)],
        "moe_shared_expert_intermediate_size": config.moe_intermediate_size * config.n_shared_experts,
        "moe_router_topk": config.num_experts_per_tok,
        "moe_router_num_groups": config.n_group,
        "moe_router_group_topk": config.topk_group,
        "moe_router_pre_softmax": True,
        "moe_router_score_function": "sigmoid",
        "moe_router_enable_expert_bias": True,
        "moe_router_topk_scaling_factor": config.routed_scaling_factor,
    }


MOE = MegatronArchitecture(
    model_type="qwen3_moe",
    hf_classes=("Qwen3MoeForCausalLM",),
    transformer_config=moe_config,
    weights=DIRECT | ATTENTION | EXPERTS,
)
LATENT_ATTENTION = MegatronArchitecture(
    model_type="deepseek_v3",
    hf_classes=("DeepseekV3ForCausalLM",),
    transformer_config=latent_config,
    weights=DIRECT | LATENT | EXPERTS | DENSE,
    latent_attention=True,
)


def plover_with_mtp() -> MegatronArchitecture:
    """The guide's example with a block that predicts one more token."""
    import plover_llm

    own = registered()[plover_llm.PloverConfig.model_type]
    block, layer = "mtp.layers.{mtp}", "model.layers.{mtp_layer}"
    names = {
        f"{block}.enorm.weight": f"{layer}.enorm.weight",
        f"{block}.hnorm.weight": f"{layer}.hnorm.weight",
        f"{block}.eh_proj.weight": f"{layer}.eh_proj.weight",
        f"{block}.final_layernorm.weight": f"{layer}.final_norm.weight",
    }
    for name, targets in own.weights.items():
        if "{layer}" in name:
            several = (targets,) if isinstance(targets, str) else targets
            names[name.replace(OURS, f"{block}.transformer_layer")] = tuple(
                target.replace(LAYER, layer) for target in several
            )
    return replace(
        own,
        transformer_config=lambda config: {
            **own.transformer_config(config),
            "mtp_num_layers": config.num_nextn_predict_layers,
        },
        weights={**own.weights, **names},
    )


def add() -> None:
    """Register all of them; an entry point may name this."""
    import plover_llm  # registers itself

    assert plover_llm.megatron
    register_architecture(MOE)
    register_architecture(LATENT_ATTENTION)
