# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors whose value on every rank is known, so that each rank can tell the right answer of a collective."""

from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import TOLERANCES, require_close, require_equal

# Around the sizes at which libraries change their algorithm, and where one divided averages twice (below 64).
SIZES = (1, 3, 63, 64, 1000)
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
EXACT = (torch.int64, torch.int32, torch.uint8)


def values(size: int, rank: int, dtype: Any, device: Any) -> Any:
    """Return this rank's contribution: small whole numbers, exact in every type, different on every rank and place."""
    return ((torch.arange(size) % 5 + 1) * (rank + 1)).to(dtype).to(device)


def total(size: int, ranks: "list[int] | range") -> Any:
    """Return the sum over some ranks, in float64."""
    return sum(values(size, rank, torch.float64, "cpu") for rank in ranks)


def require_same(actual: Any, expected: Any, what: str) -> None:
    """Compare with a float64 answer: exactly for integers, within the type's tolerance for floats."""
    if actual.dtype in TOLERANCES:
        require_close(actual, expected, actual.dtype, what)
    else:
        require_equal(actual, expected.to(actual.dtype), what)


def settle(bench: Bench) -> None:
    """Wait for the device: a collective's result is there when the device's own work is done."""
    bench.module.synchronize()
