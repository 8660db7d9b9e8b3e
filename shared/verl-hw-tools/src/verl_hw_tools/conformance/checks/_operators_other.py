# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Operators whose check is more than a comparison with the formula in float64."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import SHORT_NAMES, require_close, require_equal
from verl_hw_tools.conformance.registry import Check, add, check
from verl_hw_tools.conformance.verdicts import require

_LONG = 4096


def _accumulation(dtype: Any) -> Callable[[Bench], str]:
    def run(bench: Bench) -> str:
        # All positive: in a bf16 accumulator the sum stops growing at 256 times the summand.
        a = (torch.rand(3, _LONG, generator=bench.generator(1), dtype=torch.float64) + 0.5).to(dtype)
        b = ((torch.rand(_LONG, 5, generator=bench.generator(2), dtype=torch.float64) + 0.5) / 64).to(dtype)
        wide_a, wide_b = a.double(), b.double()
        on_a, on_b = a.to(bench.device), b.to(bench.device)
        errors = [
            require_close(on_a @ on_b, wide_a @ wide_b, dtype, "matmul"),
            require_close(functional.linear(on_a, on_b.t()), wide_a @ wide_b, dtype, "linear"),
            require_close(on_a.sum(-1), wide_a.sum(-1), dtype, "sum"),
            require_close(on_a.mean(-1), wide_a.mean(-1), dtype, "mean"),
        ]
        return f"largest error {max(error.relative for error in errors):.1g}"

    return run


for _dtype in (torch.bfloat16, torch.float16):
    add(
        Check(
            id=f"operators.accumulation.{SHORT_NAMES[_dtype]}",
            title=f"products and sums of {_LONG} {SHORT_NAMES[_dtype]} values are accumulated in fp32",
            blocks="every model: losses and gradients drift",
            run=_accumulation(_dtype),
        )
    )


@check("operators.multinomial", blocks="sampling")
def multinomial(bench: Bench) -> None:
    """multinomial draws what has a probability, about as often as that says."""
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 4.0])
    drawn = torch.multinomial(weights.to(bench.device), 4000, replacement=True).cpu()
    shares = torch.bincount(drawn, minlength=5).double() / 4000
    require_close(shares, weights.double() / 8, torch.float32, "share", factor=5000)
    once = torch.multinomial(weights.to(bench.device), 3, replacement=False).cpu()
    require(sorted(once.tolist()) == [1, 2, 4], f"without replacement: {once.tolist()}", "1, 2 and 4 in some order")


@check("operators.autocast", blocks="mixed precision (FSDP1, critics)")
def autocast(bench: Bench) -> None:
    """Autocast computes products in the low type and losses in fp32, backward too."""
    for dtype in (torch.bfloat16, torch.float16):
        weight = torch.randn(6, 8, generator=bench.generator(1)).to(bench.device).requires_grad_()
        x = torch.randn(4, 8, generator=bench.generator(2)).to(bench.device)
        with torch.autocast(bench.type, dtype=dtype):
            hidden = functional.linear(x, weight)
            loss = functional.cross_entropy(hidden, torch.arange(4, device=bench.device))
        require(hidden.dtype == dtype, f"linear gave {hidden.dtype}", str(dtype))
        require(loss.dtype == torch.float32, f"cross_entropy gave {loss.dtype}", "torch.float32")
        loss.backward()
        reference = weight.detach().cpu().double().requires_grad_()
        functional.cross_entropy(functional.linear(x.cpu().double(), reference), torch.arange(4)).backward()
        require(weight.grad is not None, "the weight got no gradient", "a gradient")
        require_close(weight.grad, reference.grad, dtype, "gradient", factor=2)


@check("operators.activation_checkpointing", blocks="gradient checkpointing (verl's default)")
def activation_checkpointing(bench: Bench) -> None:
    """Recomputing activations, dropout included, gives the same gradients as keeping them."""
    values = torch.randn(16, 16, generator=bench.generator(3)).to(bench.device)

    def layer(x: Any) -> Any:
        return functional.dropout(torch.tanh(x @ values), 0.5, training=True) @ values

    gradients = []
    for recompute in (False, True):
        x = torch.ones(4, 16, device=bench.device).requires_grad_()
        bench.module.manual_seed(5)
        out = checkpoint(layer, x, use_reentrant=False) if recompute else layer(x)
        out.square().sum().backward()
        gradients.append(x.grad)
    require_equal(gradients[1], gradients[0], "gradient with recomputation")


@check("operators.integers", blocks="token ids, masks, positions")
def integers(bench: Bench) -> None:
    """Integer and boolean arithmetic is exact."""
    ids = torch.randint(-(2**40), 2**40, (7, 9), generator=bench.generator(4))
    mask = ids % 3 == 0
    for name, formula in _INTEGER_FORMULAS.items():
        require_equal(formula(ids.to(bench.device), mask.to(bench.device)), formula(ids, mask), name)


_INTEGER_FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda ids, mask: ids.sum(-1),
    "masked sum": lambda ids, mask: (ids * mask).sum(0),
    "cumulative positions": lambda ids, mask: mask.long().cumsum(-1) - 1,
    "floor division": lambda ids, mask: ids.div(7, rounding_mode="floor"),
    "where": lambda ids, mask: torch.where(mask, ids, -1),
    "nonzero": lambda ids, mask: mask.nonzero(),
    "any and all": lambda ids, mask: torch.stack([mask.any(-1), mask.all(-1), ~mask.any(-1)]),
    "argmax": lambda ids, mask: ids.argmax(-1),
    "max": lambda ids, mask: ids.amax(-1),
    "repeat_interleave": lambda ids, mask: ids[0].repeat_interleave(3),
    "bincount": lambda ids, mask: torch.bincount(ids.flatten().abs() % 5, minlength=6),
    "unique": lambda ids, mask: torch.unique(ids % 5),
}


@check("operators.nan_and_inf", blocks="gradient scaler, skipping a step with a bad gradient")
def nan_and_inf(bench: Bench) -> None:
    """NaN and infinity are kept and found."""
    values = torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), 0.0])
    on_device = values.to(bench.device)
    require_equal(on_device.isnan(), values.isnan(), "isnan")
    require_equal(on_device.isinf(), values.isinf(), "isinf")
    require_equal(on_device.isfinite(), values.isfinite(), "isfinite")
    require_equal(on_device.nan_to_num(0.0, 1.0, -1.0), values.nan_to_num(0.0, 1.0, -1.0), "nan_to_num")
    require(bool(torch.linalg.vector_norm(on_device).isnan()), "the norm of NaN is no NaN", "NaN")
