# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Tiny models of every family, packed against one sequence at a time, patched as verl's engine patches them."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from verl.workers.engine.fsdp import transformer_impl

from verl_hw_core import upstream
from verl_hw_core.training.attention import PACKING_ROW, require_separate_sequences

LENGTHS = (5, 1, 7, 4)
TEXT = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
MROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}}
VISION = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 32}
CASES = {
    "llama": ("llama", TEXT),
    "qwen2": ("qwen2", TEXT),
    "qwen2, sliding window": (
        "qwen2",
        {**TEXT, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0},
    ),
    "qwen3": ("qwen3", TEXT),
    "qwen3_moe": ("qwen3_moe", {**TEXT, **EXPERTS}),
    "qwen2_5_vl": (
        "qwen2_5_vl",
        {"text_config": {**TEXT, **MROPE}, "vision_config": {**VISION, "fullatt_block_indexes": [0]}},
    ),
    "qwen3_next": (
        "qwen3_next",
        {
            **TEXT,
            **EXPERTS,
            "shared_expert_intermediate_size": 16,
            "layer_types": ["linear_attention", "full_attention"],
            "linear_num_value_heads": 2,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
        },
    ),
}


def model_results(device: str) -> dict[str, dict]:
    """Of each family and implementation: how far packed logits are off, whether they leak, or why it is refused.

    The control is verl's own patching, without ours. It comes last, since verl's patches of classes stay.
    """
    results = {
        f"{name} {attention}": _compare(*case, attention, device)
        for name, case in CASES.items()
        for attention in ("sdpa", "eager")
    }
    upstream.restore(PACKING_ROW)
    try:
        results["control"] = _compare(*CASES["qwen2_5_vl"], "sdpa", device)
    except (ImportError, NameError, TypeError) as error:
        results["control"] = {"error": f"{type(error).__name__}: {error}"}
    return results


def _compare(model_type: str, settings: dict, attention: str, device: str) -> dict:
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **settings)
    auto_class = AutoModelForImageTextToText if "vision_config" in settings else AutoModelForCausalLM
    # transformers counts tokens per expert in int32 off the CPU, which the simulator's kernels, the CPU's, refuse.
    kernels = {"experts_implementation": "eager"} if "num_experts" in settings else {}
    model = auto_class.from_config(config, attn_implementation=attention, **kernels).to(device).eval()
    transformer_impl.apply_monkey_patch(model=model, use_remove_padding=True, ulysses_sp_size=1)
    refusal = ""
    try:
        require_separate_sequences(model)
    except ValueError as error:
        refusal = f"{type(error).__name__}: {error}"
    sequences = [torch.randint(3, 60, (length,)) for length in LENGTHS]
    together = _logits(model, sequences, device)
    alone = torch.cat([_logits(model, [sequence], device) for sequence in sequences])
    changed = [sequence if row != 2 else (sequence + 1) % 60 for row, sequence in enumerate(sequences)]
    after = _logits(model, changed, device)
    rows = torch.tensor([row for row, length in enumerate(LENGTHS) for _ in range(length)])
    return {
        "refusal": refusal,
        "off by": float((together - alone).abs().max()),
        "size": float(together.abs().max()),
        "leak": float((after - together)[rows != 2].abs().max()),
        "change": float((after - together)[rows == 2].abs().max()),
    }


def _logits(model, sequences: list[torch.Tensor], device: str) -> torch.Tensor:
    """Logits of one pack, (tokens, vocabulary), on the host."""
    ids = torch.cat(sequences)[None].to(device)
    positions = torch.cat([torch.arange(len(sequence)) for sequence in sequences])[None].to(device)
    with torch.no_grad():
        if not hasattr(model.config, "vision_config"):
            output = model(input_ids=ids, attention_mask=None, position_ids=positions, use_cache=False)
            return output.logits[0].float().cpu()
        # verl 0.9.1 cannot run a batch without images through this model (transformers 5 changed what a vision tower
        # returns); the language model below it is what packing is about. Text positions come first, as in verl's data.
        language_model = model.model.language_model
        hidden = language_model(
            inputs_embeds=model.get_input_embeddings()(ids),
            attention_mask=None,
            position_ids=positions[None].expand(4, -1, -1),
            use_cache=False,
        ).last_hidden_state
        return model.lm_head(hidden)[0].float().cpu()
