# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The part of a Plover layer that no TransformerLayerSpec has: a norm behind the attention. Imports megatron."""

from typing import Any

import torch
from megatron.core.tensor_parallel.layers import RowParallelLinear

from verl_hw_core.megatron.local_modules import Norm


class NormedRowParallelLinear(RowParallelLinear):
    """The attention's output projection and the norm after it, with parameter ``norm_weight``."""

    def __init__(self, input_size: int, output_size: int, *, config: Any, **arguments: Any) -> None:
        super().__init__(input_size, output_size, config=config, **arguments)
        # Marked by Norm: under sequence parallelism each rank has a part of its gradient.
        self.norm_weight = Norm(config, output_size, config.layernorm_epsilon).weight

    def forward(self, input_: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return (output, no bias), (tokens, batch, channels)."""
        projected, _ = super().forward(input_)
        shape, eps = (self.output_size,), self.config.layernorm_epsilon
        return torch.nn.functional.rms_norm(projected, shape, self.norm_weight, eps), None


def with_norm_behind_attention(layer: Any, _config: Any) -> Any:
    """Take megatron-core's layer, and put our projection into its attention."""
    layer.submodules.self_attention.submodules.linear_proj = NormedRowParallelLinear
    return layer
