# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face config made small, of the same kind: fewer and narrower layers, fewer experts, a short vocabulary."""

from typing import Any

# Largest values; a name that the config does not have, or has as None, stays as it is.
_LIMITS = {
    "num_hidden_layers": 2,
    "vocab_size": 256,
    "max_position_embeddings": 512,
    "intermediate_size": 96,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 48,
    "head_dim": 16,
    "num_experts": 4,
    "n_routed_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "q_lora_rank": 32,
    "kv_lora_rank": 24,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
}
_CHANNELS, _KEY_HEADS, _HEADS_OF_A_KEY = 16, 2, 2
_TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id")
_BY_LAYER = ("layer_types", "mlp_layer_types")


def make_tiny(config: Any) -> dict[str, tuple[Any, Any]]:
    """Change a config in place, and return what was changed: name, and the values before and after."""
    before = {name: getattr(config, name, None) for name in (*_LIMITS, "hidden_size", *_heads(config), *_BY_LAYER)}
    latent = getattr(config, "kv_lora_rank", None) is not None
    for name, limit in _LIMITS.items():
        value = getattr(config, name, None)
        if isinstance(value, int) and not (latent and name == "head_dim"):
            setattr(config, name, min(value, limit))
    if latent:
        _follow_latent_sizes(config)
    for name, value in _heads(config).items():
        setattr(config, name, value)
    config.hidden_size = min(config.hidden_size, config.num_attention_heads * _CHANNELS)
    for name in _BY_LAYER:
        if isinstance(getattr(config, name, None), list):
            setattr(config, name, getattr(config, name)[: config.num_hidden_layers])
    for name in _TOKENS:
        if getattr(config, name, None) is not None:
            setattr(config, name, 0)
    after = {name: getattr(config, name, None) for name in before}
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}


def _follow_latent_sizes(config: Any) -> None:
    """Sizes that transformers computes from others when a config of latent attention is made."""
    if getattr(config, "head_dim", None) is not None:
        config.head_dim = config.qk_rope_head_dim
    if getattr(config, "qk_head_dim", None) is not None:
        config.qk_head_dim = config.qk_nope_head_dim + config.qk_rope_head_dim


def _heads(config: Any) -> dict[str, int]:
    heads = config.num_attention_heads
    keys = getattr(config, "num_key_value_heads", None) or heads
    small = min(keys, _KEY_HEADS)
    found = {"num_attention_heads": small * min(max(1, heads // keys), _HEADS_OF_A_KEY)}
    if getattr(config, "num_key_value_heads", None) is not None:
        found["num_key_value_heads"] = small
    return found
