# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Layers of the model families: embedding, linear, norms, rotary position, gated feed-forward, routing."""

from typing import Any

import torch
from torch.nn import functional

from verl_hw_tools.conformance.checks._operator_case import Inputs, OperatorCase, wide

_MODEL = "every model"


def _randn(generator: torch.Generator, *shape: int) -> Any:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _embedding(g: torch.Generator) -> Inputs:
    return {"weight": _randn(g, 13, 8), "ids": torch.randint(0, 13, (3, 11), generator=g)}


def _linear(g: torch.Generator) -> Inputs:
    return {"x": _randn(g, 3, 5, 16), "weight": _randn(g, 12, 16) / 4, "bias": _randn(g, 12)}


def _rms_norm(i: Inputs) -> Any:
    x = wide(i["x"])
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return i["weight"] * normed.to(i["x"].dtype)


def _rotary_inputs(g: torch.Generator) -> Inputs:
    angle = torch.arange(6, dtype=torch.float64)[:, None] / 10000 ** (torch.arange(4, dtype=torch.float64) / 4)
    angle = torch.cat([angle, angle], dim=-1)
    return {"q": _randn(g, 2, 3, 6, 8), "cos": angle.cos()[None, None], "sin": angle.sin()[None, None]}


def _rotary(i: Inputs) -> Any:
    half = i["q"].shape[-1] // 2
    rotated = torch.cat([-i["q"][..., half:], i["q"][..., :half]], dim=-1)
    return i["q"] * i["cos"] + rotated * i["sin"]


def _swiglu_inputs(g: torch.Generator) -> Inputs:
    return {
        "x": _randn(g, 4, 16),
        "gate": _randn(g, 24, 16) / 4,
        "up": _randn(g, 24, 16) / 4,
        "down": _randn(g, 16, 24) / 5,
    }


def _swiglu(i: Inputs) -> Any:
    return functional.linear(
        functional.silu(functional.linear(i["x"], i["gate"])) * functional.linear(i["x"], i["up"]), i["down"]
    )


def _routing_inputs(g: torch.Generator) -> Inputs:
    # Logits far apart, or rounding would send a token to another expert than in the reference.
    logits = torch.stack([torch.randperm(6, generator=g) for _ in range(5)]).double() * 0.5
    return {"x": _randn(g, 5, 8), "logits": logits, "experts": _randn(g, 6, 8, 8) / 3}


def _routing(i: Inputs) -> Any:
    """Sparse feed-forward as in Qwen3-MoE: softmax, top-k, gather per expert, index_add."""
    weights, chosen = torch.topk(wide(i["logits"]).softmax(-1), 2, dim=-1)
    weights = (weights / weights.sum(-1, keepdim=True)).to(i["x"].dtype)
    result = torch.zeros_like(i["x"])
    for expert in range(i["experts"].shape[0]):
        tokens, slot = torch.where(chosen == expert)
        result = result.index_add(0, tokens, i["x"][tokens] @ i["experts"][expert] * weights[tokens, slot, None])
    return result


LAYERS: tuple[OperatorCase, ...] = (
    OperatorCase(
        name="embedding",
        title="embedding, with repeated tokens",
        blocks=_MODEL,
        make=_embedding,
        compute=lambda i: functional.embedding(i["ids"], i["weight"]),
    ),
    OperatorCase(
        name="linear",
        title="linear with bias",
        blocks=_MODEL,
        make=_linear,
        compute=lambda i: functional.linear(i["x"], i["weight"], i["bias"]),
        products=True,
    ),
    OperatorCase(
        name="bmm",
        title="batched matrix product",
        blocks="eager attention",
        make=lambda g: {"a": _randn(g, 3, 5, 16), "b": _randn(g, 3, 16, 7) / 4},
        compute=lambda i: torch.matmul(i["a"], i["b"]),
        products=True,
    ),
    OperatorCase(
        name="rmsnorm",
        title="RMSNorm as models write it",
        blocks="Qwen and Llama models",
        make=lambda g: {"x": _randn(g, 4, 5, 16), "weight": _randn(g, 16)},
        compute=_rms_norm,
    ),
    OperatorCase(
        name="rms_norm_fused",
        title="torch's rms_norm",
        blocks="models that use torch's RMSNorm",
        make=lambda g: {"x": _randn(g, 4, 5, 16), "weight": _randn(g, 16)},
        compute=lambda i: functional.rms_norm(i["x"], (16,), i["weight"], 1e-6),
    ),
    OperatorCase(
        name="layer_norm",
        title="layer norm",
        blocks="vision towers, GPT-style models",
        make=lambda g: {"x": _randn(g, 4, 5, 16), "weight": _randn(g, 16), "bias": _randn(g, 16)},
        compute=lambda i: functional.layer_norm(i["x"], (16,), i["weight"], i["bias"]),
    ),
    OperatorCase(
        name="rotary",
        title="rotary position",
        blocks="Qwen and Llama models",
        make=_rotary_inputs,
        compute=_rotary,
        constants=("cos", "sin"),
    ),
    OperatorCase(
        name="rotary_angles",
        title="cos and sin of rotary angles",
        blocks="Qwen and Llama models",
        make=lambda g: {"angle": torch.arange(0, 4096, 37, dtype=torch.float64)},
        compute=lambda i: torch.stack([i["angle"].cos(), i["angle"].sin()]),
        dtypes=(torch.float32,),
        factor=10.0,  # range reduction of angles in the thousands
    ),
    OperatorCase(
        name="swiglu",
        title="gated feed-forward (SwiGLU)",
        blocks="Qwen and Llama models",
        make=_swiglu_inputs,
        compute=_swiglu,
        products=True,
        factor=1.5,
    ),
    OperatorCase(
        name="gelu",
        title="GELU",
        blocks="vision towers",
        make=lambda g: {"x": _randn(g, 5, 9) * 2},
        compute=lambda i: functional.gelu(i["x"], approximate="tanh"),
    ),
    OperatorCase(
        name="moe_routing",
        title="expert routing",
        blocks="mixture-of-experts models",
        make=_routing_inputs,
        compute=_routing,
        products=True,
        factor=1.5,
    ),
)
