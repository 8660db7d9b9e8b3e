# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Plugin of vLLM for the tests' vLLM on CPU: linear layers keep their weights, so that verl can load new ones."""

import torch


def keep_weights() -> None:
    """Replace vLLM's choice of a CPU kernel, which packs a layer's weight and leaves an empty one in its place."""
    from vllm.model_executor.layers import utils

    def use_torch(layer: torch.nn.Module, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    utils.dispatch_cpu_unquantized_gemm = use_torch
