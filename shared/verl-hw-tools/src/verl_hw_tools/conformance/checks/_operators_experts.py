# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What transformers computes all experts of a layer at once with; without it they are computed one by one."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import require_close, require_equal
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import CheckFailed, CheckWarned

_BLOCKS = "mixture-of-experts models at speed; verl-hw has experts computed one by one instead (experts_implementation)"


@check("operators.histc_int32", blocks=_BLOCKS)
def histc_int32(bench: Bench) -> None:
    """histc counts int32 values: tokens of each expert."""
    ids = torch.randint(0, 6, (97,), generator=bench.generator(6), dtype=torch.int32)
    _warned(
        lambda: require_equal(
            torch.histc(ids.to(bench.device), bins=6, min=0, max=5).long(), torch.bincount(ids, minlength=6), "counts"
        )
    )


@check("operators.grouped_mm", blocks=_BLOCKS)
def grouped_mm(bench: Bench) -> None:
    """grouped_mm multiplies each expert's tokens by its weights, in bf16 and fp32, backward too."""
    if not hasattr(torch.nn.functional, "grouped_mm"):
        raise CheckWarned(f"torch {torch.__version__} has no torch.nn.functional.grouped_mm", "torch 2.10 or later")
    for dtype in (torch.bfloat16, torch.float32):
        _warned(partial(_compare_grouped, bench, dtype))


def _compare_grouped(bench: Bench, dtype: Any) -> None:
    ends = torch.tensor([5, 5, 16, 32], dtype=torch.int32)  # the second expert has no token
    tokens = torch.randn(32, 16, generator=bench.generator(7)).to(dtype)
    weights = (torch.randn(4, 16, 32, generator=bench.generator(8)) / 4).to(dtype)
    wanted_leaves = [one.double().requires_grad_() for one in (tokens, weights)]
    starts = [0, *ends.tolist()]
    parts = [wanted_leaves[0][a:b] @ wanted_leaves[1][i] for i, (a, b) in enumerate(zip(starts, ends, strict=False))]
    wanted = torch.cat(parts)
    leaves = [one.to(bench.device).requires_grad_() for one in (tokens, weights)]
    found = torch.nn.functional.grouped_mm(*leaves, offs=ends.to(bench.device))
    incoming = torch.randn(wanted.shape, generator=bench.generator(9)).to(dtype)
    gradients = torch.autograd.grad(found, leaves, incoming.to(bench.device))
    wanted_gradients = torch.autograd.grad(wanted, wanted_leaves, incoming.double())
    require_close(found, wanted.detach(), dtype, f"{dtype} product", factor=100 if dtype is torch.float32 else 1)
    for name, mine, right in zip(("tokens", "weights"), gradients, wanted_gradients, strict=True):
        require_close(mine, right, dtype, f"{dtype} gradient of {name}", factor=100 if dtype is torch.float32 else 1)


def _warned(compare: Callable[[], object]) -> None:
    """Have what does not work said as a warning, since there is another way."""
    try:
        compare()
    except CheckFailed as failed:
        raise CheckWarned(failed.observed, failed.expected) from failed
    except Exception as error:  # a chip refuses with any exception
        raise CheckWarned(f"{type(error).__name__}: {error}".splitlines()[0], "what the CPU computes") from error
