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
from registered_models import LATENT_ATTENTION, LAYER, MOE, OURS

from verl_hw_core.errors import MegatronArchitectureError
from verl_hw_core.megatron.architectures import Converted, MegatronArchitecture, register_architecture, registered
from verl_hw_tools.model_check import program
from verl_hw_tools.model_check.job import Job

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
    "later setting": changed(transformer_config=lambda _: {"add_qkv_bias": True, "of_another_version": 3}),
    "broken layer": changed(layer_spec=lambda layer, _: layer.no_such_part),
}


def write_models(folder: Path) -> None:
    """Configs of ordinary sizes; nothing is built at these."""
    configs = {
        "plover": plover_llm.PloverConfig(tie_word_embeddings=False),
        "plover-tied": plover_llm.PloverConfig(tie_word_embeddings=True),
        "qwen3": transformers.Qwen3Config(tie_word_embeddings=False),
        "qwen3_moe": transformers.Qwen3MoeConfig(tie_word_embeddings=False, norm_topk_prob=True),
        "qwen2_moe": transformers.Qwen2MoeConfig(tie_word_embeddings=False),
        "mixtral": transformers.MixtralConfig(tie_word_embeddings=False),
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


def build_with_unusual_names() -> str:
    """What a config without ``rms_norm_eps`` ends with."""
    from verl_hw_core.megatron.architecture_bridge import bridge_class

    config = plover_llm.PloverConfig()
    del config.rms_norm_eps
    try:
        bridge_class(RIGHT)(config)
    except MegatronArchitectureError as error:
        return str(error)
    return "nothing was refused"


def main() -> None:
    models, out = map(Path, sys.argv[1:3])
    write_models(models)
    for name, architecture in PLANTED.items():
        register_architecture(architecture)
        compare(models, out, name, "plover")
    (out / "unusual names.txt").write_text(build_with_unusual_names())
    register_architecture(RIGHT)
    compare(models, out, "tied", "plover-tied")
    compare(models, out, "mbridge dense", "qwen3")
    compare(models, out, "mbridge experts", "qwen3_moe")
    for name in ("qwen2_moe", "mixtral", "deepseek_v3"):
        compare(models, out, f"mbridge {name}", name)
    register_architecture(MOE)
    compare(models, out, "experts", "qwen3_moe")
    register_architecture(LATENT_ATTENTION)
    compare(models, out, "latent attention", "deepseek_v3")


if __name__ == "__main__":
    main()
