# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Who asks Megatron-core for TransformerEngine's layers gets ours, where TransformerEngine is not installed.

The bridges ask for them unconditionally. Where a TransformerEngine imports (a vendor's own, or one that stands in for
it) nothing is changed.
"""

from typing import Any

from megatron.core.models.backends import BackendSpecProvider
from megatron.core.models.gpt import gpt_layer_specs, moe_module_specs
from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
from megatron.core.transformer import multi_latent_attention
from megatron.core.transformer.mlp import MLPSubmodules
from megatron.core.transformer.moe import moe_utils
from megatron.core.transformer.moe.experts import SequentialMLP, TEGroupedMLP

from verl_hw_core import upstream
from verl_hw_core.megatron.attention import CausalAttention
from verl_hw_core.megatron.local_modules import (
    ColumnParallelGroupedLinear,
    Norm,
    NormColumnParallelLinear,
    ReplicatedLinear,
    RowParallelGroupedLinear,
)

# Ledger rows.
ROW = "megatron-local-layers"  # the layers
ROUTER_ROW = "megatron-router-gemm"  # a name that the router of experts reads
LATENT_ROW = "megatron-latent-attention"  # the layer that latent attention takes for its down projections


class LocalSpecProvider(BackendSpecProvider):
    """Layers from torch operations where Megatron-core looks for TransformerEngine's; a vendor may subclass it."""

    def linear(self) -> type:
        """Linear layer of which every rank has the whole."""
        return ReplicatedLinear

    def column_parallel_linear(self) -> Any:
        """Linear layer split by output."""
        return ColumnParallelLinear

    def row_parallel_linear(self) -> Any:
        """Linear layer split by input."""
        return RowParallelLinear

    def fuse_layernorm_and_linear(self) -> bool:
        """Whether a norm and the linear layer after it are one module."""
        return True

    def column_parallel_layer_norm_linear(self) -> type:
        """That module."""
        return NormColumnParallelLinear

    def layer_norm(self, rms_norm: bool = False, for_qk: bool = False) -> type:
        """A norm that stands alone."""
        return Norm

    def core_attention(self) -> type:
        """The attention itself, without projections."""
        return CausalAttention

    def grouped_mlp_modules(
        self, moe_use_grouped_gemm: bool, moe_use_legacy_grouped_gemm: bool
    ) -> tuple[type, MLPSubmodules]:
        """The experts; their weights are named as the bridges expect only if ``moe_use_grouped_gemm``."""
        if moe_use_grouped_gemm:
            return TEGroupedMLP, MLPSubmodules(
                linear_fc1=ColumnParallelGroupedLinear, linear_fc2=RowParallelGroupedLinear
            )
        return SequentialMLP, MLPSubmodules(linear_fc1=ColumnParallelLinear, linear_fc2=RowParallelLinear)

    def activation_func(self) -> Any:
        """None: the configuration's own function is used."""
        return None


def use_local_layers() -> None:
    """Make Megatron-core's specs of TransformerEngine layers hold ours; a second call changes nothing."""
    _provide_layers()
    upstream.applies(ROUTER_ROW)(upstream.replace)(ROUTER_ROW, moe_utils, "te_general_gemm", None)
    upstream.applies(LATENT_ROW)(upstream.replace)(LATENT_ROW, multi_latent_attention, "TELinear", ReplicatedLinear)


@upstream.applies(ROW)
def _provide_layers() -> None:
    upstream.replace(ROW, gpt_layer_specs, "TESpecProvider", LocalSpecProvider)
    upstream.replace(ROW, gpt_layer_specs, "TENorm", Norm)
    upstream.replace(ROW, moe_module_specs, "TESpecProvider", LocalSpecProvider)
