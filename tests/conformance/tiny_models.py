# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Tiny random models for the engine tests, written without importing torch."""

import json
from pathlib import Path

import numpy
from safetensors.numpy import load_file, save_file

from verl_hw_tools.demo.assets import SPECIAL_TOKENS, write_model, write_tokenizer


def write_language_model(folder: Path) -> None:
    write_tokenizer(folder)
    write_model(folder, seed=0)


def write_deep_language_model(folder: Path, layers: int) -> None:
    """The language model with more layers: verl offloads activations of models that have at least three only."""
    write_language_model(folder)
    config = json.loads((folder / "config.json").read_text())
    own = config["num_hidden_layers"]
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": layers}))
    weights = load_file(folder / "model.safetensors")
    for name in [name for name in weights if name.startswith("model.layers.0.")]:
        for number in range(own, layers):
            scale = numpy.float32(1 + 0.1 * number)
            weights[name.replace(".0.", f".{number}.", 1)] = weights[name] * scale
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def write_value_model(folder: Path) -> None:
    """The language model with a token-classification head: verl loads a critic without trl from that form only."""
    write_language_model(folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"architectures": ["Qwen2ForTokenClassification"], "num_labels": 1}
    (folder / "config.json").write_text(json.dumps(config))
    weights = load_file(folder / "model.safetensors")
    hidden = weights.pop("lm_head.weight").shape[1]
    generator = numpy.random.default_rng(1)
    weights["score.weight"] = generator.standard_normal((1, hidden), dtype=numpy.float32) * numpy.float32(0.05)
    weights["score.bias"] = numpy.zeros(1, dtype=numpy.float32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def write_model_for_vllm(folder: Path, intermediate: int) -> None:
    """The language model with heads of a size that vLLM has on CPU, and with MLPs as wide as is asked for.

    It has exactly the tokenizer's tokens: verl has vLLM, and not the trainer, leave out tokens beyond those.
    """
    write_language_model(folder)
    config = json.loads((folder / "config.json").read_text())
    hidden, head, tokens = config["hidden_size"], 32, len(SPECIAL_TOKENS) + 256
    config |= {"vocab_size": tokens, "intermediate_size": intermediate}
    config |= {"num_attention_heads": hidden // head, "num_key_value_heads": 1}
    (folder / "config.json").write_text(json.dumps(config))
    weights = load_file(folder / "model.safetensors")
    generator = numpy.random.default_rng(2)
    for name, weight in weights.items():
        if ".k_proj." in name or ".v_proj." in name:
            weights[name] = weight[:head].copy()
        elif name in ("model.embed_tokens.weight", "lm_head.weight"):
            weights[name] = weight[:tokens].copy()
        elif ".mlp." in name:
            shape = (hidden, intermediate) if ".down_proj." in name else (intermediate, hidden)
            weights[name] = generator.standard_normal(shape, dtype=numpy.float32) * numpy.float32(0.05)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
