# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the example model."""

from typing import Any

from transformers import PretrainedConfig


class PloverConfig(PretrainedConfig):
    """A small decoder: rotary positions on a part of each head, and a norm behind the attention."""

    model_type = "plover"

    def __init__(
        self,
        vocab_size: int = 512,
        hidden_size: int = 64,
        intermediate_size: int = 128,
        num_hidden_layers: int = 2,
        num_attention_heads: int = 4,
        num_key_value_heads: int = 2,
        head_dim: int = 16,
        partial_rotary_factor: float = 0.5,
        rope_theta: float = 10000.0,
        rms_norm_eps: float = 1e-6,
        max_position_embeddings: int = 2048,
        initializer_range: float = 0.02,
        **others: Any,
    ) -> None:
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_key_value_heads
        self.head_dim = head_dim
        self.partial_rotary_factor = partial_rotary_factor
        self.rope_theta = rope_theta
        self.rms_norm_eps = rms_norm_eps
        self.max_position_embeddings = max_position_embeddings
        self.initializer_range = initializer_range
        self.attention_dropout = 0.0
        super().__init__(**others)
