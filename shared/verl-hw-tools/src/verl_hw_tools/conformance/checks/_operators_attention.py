# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Softmax and scaled dot product attention."""

from typing import Any

import torch
from torch.nn import functional

from verl_hw_tools.conformance.checks._operator_case import Inputs, OperatorCase

_SDPA = "attention without flash_attn (sdpa)"


def _randn(generator: torch.Generator, *shape: int) -> Any:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _heads(g: torch.Generator, key_heads: int = 4) -> Inputs:
    return {"q": _randn(g, 2, 4, 9, 8), "k": _randn(g, 2, key_heads, 9, 8), "v": _randn(g, 2, key_heads, 9, 8)}


def _padded(g: torch.Generator) -> Inputs:
    # Two sequences packed into one row: neither may see the other. What leaks changes the result a lot.
    place = torch.arange(9)
    same = (place[:, None] < 4) == (place[None, :] < 4)
    mask = same & (place[:, None] >= place[None, :])
    return {**_heads(g), "mask": mask[None, None]}


def _additive(i: Inputs) -> Any:
    bias = torch.zeros(i["mask"].shape, dtype=i["q"].dtype, device=i["q"].device)
    return bias.masked_fill(~i["mask"], torch.finfo(i["q"].dtype).min)


def _eager(i: Inputs) -> Any:
    scores = i["q"] @ i["k"].transpose(-1, -2) * i["q"].shape[-1] ** -0.5 + _additive(i)
    wide = torch.float64 if scores.dtype == torch.float64 else torch.float32
    return functional.softmax(scores, dim=-1, dtype=wide).to(i["q"].dtype) @ i["v"]


ATTENTION: tuple[OperatorCase, ...] = (
    OperatorCase(
        name="softmax",
        title="softmax of large and small values",
        blocks="attention, entropy, sampling",
        # exp(12) is beyond fp16: a kernel that does not subtract the maximum shows.
        make=lambda g: {"x": _randn(g, 6, 33) * 6},
        compute=lambda i: functional.softmax(i["x"], dim=-1),
    ),
    OperatorCase(
        name="sdpa_causal",
        title="scaled dot product attention, causal",
        blocks=_SDPA,
        make=_heads,
        compute=lambda i: functional.scaled_dot_product_attention(i["q"], i["k"], i["v"], is_causal=True),
        products=True,
        factor=1.5,
    ),
    OperatorCase(
        name="sdpa_mask",
        title="scaled dot product attention with a mask of two packed sequences",
        blocks=f"{_SDPA}, padding removal",
        make=_padded,
        compute=lambda i: functional.scaled_dot_product_attention(i["q"], i["k"], i["v"], attn_mask=i["mask"]),
        products=True,
        factor=1.5,
    ),
    OperatorCase(
        name="sdpa_additive_mask",
        title="scaled dot product attention with an additive mask",
        blocks=f"{_SDPA}, padding removal",
        make=_padded,
        compute=lambda i: functional.scaled_dot_product_attention(i["q"], i["k"], i["v"], attn_mask=_additive(i)),
        products=True,
        factor=1.5,
    ),
    OperatorCase(
        name="sdpa_gqa",
        title="scaled dot product attention with grouped queries",
        blocks=f"{_SDPA} of Qwen and Llama models",
        make=lambda g: _heads(g, key_heads=2),
        compute=lambda i: functional.scaled_dot_product_attention(
            i["q"], i["k"], i["v"], is_causal=True, enable_gqa=True
        ),
        products=True,
        factor=1.5,
    ),
    OperatorCase(
        name="attention_eager",
        title="attention in single operators",
        blocks="attention without flash_attn (eager)",
        make=_padded,
        compute=_eager,
        products=True,
        factor=2.0,
    ),
)
