# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Log-probs of a tiny mixture-of-experts policy from verl's FSDP2 engine, and the same from transformers on the CPU.

Usage: ``moe_forward.py FOLDER [EXPERTS_IMPLEMENTATION]``. Answers ``{"off by": ..., "error": ...}``.
"""

import json
import sys
from pathlib import Path

import said
import torch
from engine_program import VOCABULARY, build_engine, make_batch
from rank_start import joined
from tiny_models import write_tokenizer
from transformers import AutoModelForCausalLM, Qwen3MoeConfig
from verl.plugin.platform import get_platform

folder, chosen = Path(sys.argv[1]), sys.argv[2:]
platform = get_platform()
answer = {"off by": None, "error": ""}

config = Qwen3MoeConfig(
    vocab_size=VOCABULARY + 8, hidden_size=32, intermediate_size=48, moe_intermediate_size=16, num_hidden_layers=1,
    num_attention_heads=2, num_key_value_heads=1, head_dim=16, num_experts=4, num_experts_per_tok=2,
)  # fmt: skip
torch.manual_seed(0)
reference = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
reference.save_pretrained(folder / "language_model")
write_tokenizer(folder / "language_model")

with joined(0, 1, folder, platform.device_name, platform.communication_backend_name()):
    override = {"experts_implementation": chosen[0]} if chosen else {}
    engine, _ = build_engine(folder, "fsdp2", "language_model", 1, overrides=override)
    batch = make_batch(1, "language_model")
    try:
        with engine.eval_mode():
            output = engine.infer_batch(batch.clone(), loss_function=None)["model_output"]["log_probs"]
    except Exception as error:  # noqa: BLE001 - which one it is, is the answer
        answer["error"] = said.text_of(error)
    else:
        differences = []
        for row, tokens in zip(output.unbind(), batch["input_ids"].unbind(), strict=True):
            with torch.no_grad():
                logits = reference(tokens[None]).logits[0].log_softmax(-1)
            expected = logits[:-1].gather(-1, tokens[1:, None])[:, 0]
            differences.append((row.cpu()[:-1] - expected).abs().max().item())
        answer["off by"] = max(differences)
print(json.dumps(answer))
