# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Compare models in Megatron and transformers in one process, some of them registered wrongly on purpose.

Usage: ``python model_check_program.py MODELS_FOLDER OUT_FOLDER``, on a simulated device; one report a variant.
"""

import dataclasses
import json
import sys
import traceback
from pathlib import Path

import plover_llm
import torch
import transformers
from plover_llm import megatron as plover

from verl_hw_core.megatron.architectures import Converted, MegatronArchitecture, register_architecture, registered
from verl_hw_core.model_check import program
from verl_hw_core.model_check.job import Job

LAYER, OURS = "model.layers.{layer}", "decoder.layers.{layer}"
DIRECT = {name: target for name, target in plover.WEIGHTS.items() if "{layer}" not in name}
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
RIGHT = registered()["plover"]
GATE, UP = (f"{LAYER}.mlp.{one}_proj.weight" for one in ("gate", "up"))
FIRST, BIAS = f"{OURS}.mlp.linear_fc1.weight", f"{OURS}.self_attention.linear_qkv.bias"


def changed(**fields) -> MegatronArchitecture:
    return dataclasses.replace(RIGHT, **fields)


def weights(**others) -> dict:
    return {**RIGHT.weights, **others}


def without(*names: str) -> dict:
    return {name: target for name, target in RIGHT.weights.items() if name not in names}


def one_way(tensor, config):
    """The way back of a conversion, with the two parts exchanged."""
    return tensor.chunk(2)[::-1]


PLANTED = {
    "right": RIGHT,
    "padded only": changed(batches=("padded",)),
    "swapped mapping": changed(weights=weights(**{FIRST: (UP, GATE)})),
    "exchanged norms": changed(
        weights=weights(
            **{
                f"{OURS}.self_attention.linear_qkv.layer_norm_weight": f"{LAYER}.mlp_norm.weight",
                f"{OURS}.mlp.linear_fc1.layer_norm_weight": f"{LAYER}.input_norm.weight",
            }
        )
    ),
    "one-way mapping": changed(
        weights=weights(**{FIRST: Converted((GATE, UP), lambda parts, _: torch.cat(list(parts)), one_way)})
    ),
    "epsilon": changed(transformer_config=lambda _: {"add_qkv_bias": True, "layernorm_epsilon": 1e-5}),
    "dropped bias": changed(transformer_config=lambda _: {}, weights=without(BIAS)),
    "unmapped bias": changed(weights=without(BIAS)),
    "whole rotary": changed(model_arguments=lambda _: {}),
    "no norm behind attention": changed(
        layer_spec=lambda layer, _: layer, weights=without(f"{OURS}.self_attention.linear_proj.norm_weight")
    ),
    "broken layer": changed(layer_spec=lambda layer, _: layer.no_such_part),
}


def write_models(folder: Path) -> None:
    """Configs of ordinary sizes; nothing is built at these."""
    configs = {
        "plover": plover_llm.PloverConfig(tie_word_embeddings=False),
        "plover-tied": plover_llm.PloverConfig(tie_word_embeddings=True),
        "qwen3": transformers.Qwen3Config(tie_word_embeddings=False),
        "qwen3_moe": transformers.Qwen3MoeConfig(tie_word_embeddings=False, norm_topk_prob=True),
        "deepseek_v3": transformers.DeepseekV3Config(tie_word_embeddings=False, rope_scaling=None),
    }
    for name, config in configs.items():
        config.save_pretrained(folder / name)


def compare(models: Path, out: Path, name: str, model: str) -> None:
    folder = out / name.replace(" ", "-")
    folder.mkdir()
    try:
        job = Job(model=str(models / model), vendor="cambricon", simulated=True)
        report = program.run(job, folder).as_data()
    except Exception:  # noqa: BLE001 - the test that reads it says so
        report = {"error": traceback.format_exc()}
    (out / f"{name}.json").write_text(json.dumps(report))


def main() -> None:
    models, out = map(Path, sys.argv[1:3])
    write_models(models)
    for name, architecture in PLANTED.items():
        register_architecture(architecture)
        compare(models, out, name, "plover")
    register_architecture(RIGHT)
    compare(models, out, "tied", "plover-tied")
    compare(models, out, "mbridge dense", "qwen3")
    compare(models, out, "mbridge experts", "qwen3_moe")
    register_architecture(MOE)
    compare(models, out, "experts", "qwen3_moe")
    register_architecture(LATENT_ATTENTION)
    compare(models, out, "latent attention", "deepseek_v3")


if __name__ == "__main__":
    main()
