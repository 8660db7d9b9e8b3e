# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The average: several libraries reject it or get it wrong. verl-hw then sums and divides, so this is a warning."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.checks._ranked import FLOATS, SIZES, require_same, settle, total, values
from verl_hw_tools.conformance.numerics import SHORT_NAMES
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import CheckFailed, CheckWarned

# Libraries take another path for large messages, which may have faults of its own.
_SIZES = (*SIZES, 1 << 18)

_BLOCKS = "native averages of gradients and losses; verl-hw switches to sum-then-divide, which costs one division"
_EXPECTED = "the mean of the ranks; verl-hw switches to sum-then-divide"


Average = Callable[[], tuple[Any, Any]]


def _warn_unless(averages: dict[str, Average]) -> None:
    """Run averages and compare; each returns the device's result and the answer.

    All of them run before the first is compared: ranks that disagree must not leave each other waiting.
    """
    outcomes: dict[str, tuple[Any, Any] | str] = {}
    for what, compute in averages.items():
        try:
            outcomes[what] = compute()
        except Exception as error:  # noqa: BLE001 - each vendor refuses with another type
            outcomes[what] = f"{type(error).__name__}: {error}".partition("\n")[0]
    for what, outcome in outcomes.items():
        if isinstance(outcome, str):
            raise CheckWarned(f"AVG of {what} is refused: {outcome}", _EXPECTED)
        try:
            require_same(*outcome, f"AVG of {what}")
        except CheckFailed as failure:
            raise CheckWarned(failure.observed, f"{failure.expected}; verl-hw switches to sum-then-divide") from failure


def _mean(size: int, bench: Bench) -> Any:
    return total(size, range(bench.world_size)) / bench.world_size


@check("collectives.all_reduce.avg", blocks=_BLOCKS, processes=2)
def all_reduce_avg(bench: Bench) -> None:
    """all_reduce averages, for every size and type."""

    def average(size: int, dtype: Any) -> tuple[Any, Any]:
        tensor = values(size, bench.rank, dtype, bench.device)
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        settle(bench)
        return tensor, _mean(size, bench)

    _warn_unless({f"{size} {SHORT_NAMES[dtype]}": partial(average, size, dtype) for dtype in FLOATS for size in _SIZES})


@check("collectives.all_reduce.avg_async", blocks=_BLOCKS, processes=2)
def all_reduce_avg_async(bench: Bench) -> None:
    """all_reduce with async_op averages."""

    def average() -> tuple[Any, Any]:
        tensor = values(3, bench.rank, torch.float32, bench.device)
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG, async_op=True).wait()
        settle(bench)
        return tensor, _mean(3, bench)

    _warn_unless({"3 fp32, asynchronous": average})


@check("collectives.reduce_scatter.avg", blocks=_BLOCKS, processes=2)
def reduce_scatter_avg(bench: Bench) -> None:
    """reduce_scatter_tensor averages, for every size and type."""

    def average(size: int, dtype: Any) -> tuple[Any, Any]:
        part = torch.empty(size, dtype=dtype, device=bench.device)
        whole = values(size * bench.world_size, bench.rank, dtype, bench.device)
        dist.reduce_scatter_tensor(part, whole, op=dist.ReduceOp.AVG)
        settle(bench)
        return part, _mean(size * bench.world_size, bench).chunk(bench.world_size)[bench.rank]

    _warn_unless(
        {
            f"reduce_scatter of {size} {SHORT_NAMES[dtype]}": partial(average, size, dtype)
            for dtype in FLOATS
            for size in _SIZES
        }
    )


@check("collectives.reduce.avg", blocks=_BLOCKS, processes=2)
def reduce_avg(bench: Bench) -> None:
    """Reduce averages at the root."""

    def average() -> tuple[Any, Any]:
        tensor = values(64, bench.rank, torch.float32, bench.device)
        dist.reduce(tensor, dst=0, op=dist.ReduceOp.AVG)
        settle(bench)
        # The others' tensors are scratch space.
        return (tensor, _mean(64, bench)) if bench.rank == 0 else (torch.zeros(1), torch.zeros(1))

    _warn_unless({"64 fp32 at root 0": average})
