# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Transformer settings of a Megatron run without TransformerEngine: kernels that exist for CUDA only are off."""

from collections.abc import Mapping
from typing import Any

from verl_hw_core.errors import UnsupportedModelSettingError

# Each needs TransformerEngine, Apex or a kernel compiled for CUDA; jit-fused ones need torch.compile for the device.
_CUDA_KERNELS = (
    "apply_rope_fusion",
    "bias_activation_fusion",
    "bias_dropout_fusion",
    "gradient_accumulation_fusion",
    "masked_softmax_fusion",
    "persist_layer_norm",
    "memory_efficient_layer_norm",
    "moe_permute_fusion",
    "moe_router_fusion",
    "use_fused_weighted_squared_relu",
    "tp_comm_overlap",
    "cross_entropy_loss_fusion",
)
# Switching these off would train something else than was asked for.
_NO_SUBSTITUTE = ("fp8", "fp4", "delay_wgrad_compute", "enable_cuda_graph", "cpu_offloading")


def local_overrides(requested: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return verl's ``override_transformer_config`` for layers from torch operations.

    Args:
        requested: What the user set.
        known: Fields of the installed Megatron's TransformerConfig.

    Raises:
        UnsupportedModelSettingError: A setting has no counterpart without TransformerEngine.
    """
    impossible = {name: requested[name] for name in _NO_SUBSTITUTE if requested.get(name)}
    if impossible:
        found = ", ".join(f"{name}={value!r}" for name, value in impossible.items())
        raise UnsupportedModelSettingError(
            f"Megatron without TransformerEngine has no {found}: remove it from override_transformer_config"
        )
    off = {name: False for name in _CUDA_KERNELS if name in known}
    # One name for all engines of a process: Megatron writes it to variables and refuses a second value.
    return {**requested, **off, "attention_backend": "local"}
