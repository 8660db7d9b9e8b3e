# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The example model in transformers, without a cache: what the Megatron model is compared with."""

from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast

from plover_llm.configuration import PloverConfig


def rotate(heads: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Turn the first channels of each head, as many as there are angles; the others pass."""
    turned, passed = heads.split([angles.size(-1), heads.size(-1) - angles.size(-1)], dim=-1)
    first, second = turned.chunk(2, dim=-1)
    turned = turned * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()
    return torch.cat((turned, passed), dim=-1)


class PloverAttention(nn.Module):
    """Grouped attention with biases; its output goes through a norm before it is added to the residual."""

    def __init__(self, config: PloverConfig) -> None:
        super().__init__()
        self.config = config
        size, channels = config.hidden_size, config.head_dim
        self.q_proj = nn.Linear(size, config.num_attention_heads * channels, bias=True)
        self.k_proj = nn.Linear(size, config.num_key_value_heads * channels, bias=True)
        self.v_proj = nn.Linear(size, config.num_key_value_heads * channels, bias=True)
        self.o_proj = nn.Linear(config.num_attention_heads * channels, size, bias=False)
        self.out_norm = nn.RMSNorm(size, eps=config.rms_norm_eps)

    def forward(self, hidden: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        """Attend causally; (batch, tokens, channels)."""
        query, key, value = (
            projection(hidden).unflatten(-1, (-1, self.config.head_dim)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        attended = functional.scaled_dot_product_attention(
            rotate(query, angles), rotate(key, angles), value, is_causal=True, enable_gqa=True
        )
        return self.out_norm(self.o_proj(attended.transpose(1, 2).flatten(2)))


class PloverMLP(nn.Module):
    """SwiGLU."""

    def __init__(self, config: PloverConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the layer's change of the residual."""
        return self.down_proj(functional.silu(self.gate_proj(hidden)) * self.up_proj(hidden))


class PloverLayer(nn.Module):
    """Attention and MLP, each behind a norm."""

    def __init__(self, config: PloverConfig) -> None:
        super().__init__()
        self.input_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.self_attn = PloverAttention(config)
        self.mlp_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = PloverMLP(config)

    def forward(self, hidden: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        """Return the next layer's input."""
        hidden = hidden + self.self_attn(self.input_norm(hidden), angles)
        return hidden + self.mlp(self.mlp_norm(hidden))


class PloverPreTrainedModel(PreTrainedModel):
    """What transformers wants to know of all Plover classes."""

    config_class = PloverConfig
    base_model_prefix = "model"
    _supports_sdpa = True

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


class PloverModel(PloverPreTrainedModel):
    """The decoder without a head."""

    def __init__(self, config: PloverConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(PloverLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_init()

    def forward(self, input_ids: torch.Tensor, **_: Any) -> BaseModelOutputWithPast:
        """Return the last hidden states of whole sequences, (batch, tokens, channels)."""
        rotary = int(self.config.head_dim * self.config.partial_rotary_factor)
        exponents = torch.arange(0, rotary, 2, device=input_ids.device).float() / rotary
        positions = torch.arange(input_ids.size(1), device=input_ids.device).float()
        angles = torch.outer(positions, self.config.rope_theta**-exponents).repeat(1, 2)
        hidden = self.embed_tokens(input_ids)
        for layer in self.layers:
            hidden = layer(hidden, angles.to(hidden.dtype))
        return BaseModelOutputWithPast(last_hidden_state=self.norm(hidden))


class PloverForCausalLM(PloverPreTrainedModel):
    """The decoder with a language model head."""

    _tied_weights_keys: ClassVar = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config: PloverConfig) -> None:
        super().__init__(config)
        self.model = PloverModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(self, input_ids: torch.Tensor, **others: Any) -> CausalLMOutputWithPast:
        """Return the logits, (batch, tokens, vocabulary)."""
        return CausalLMOutputWithPast(logits=self.lm_head(self.model(input_ids, **others).last_hidden_state))
