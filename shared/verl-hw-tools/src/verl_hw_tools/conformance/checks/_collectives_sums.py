# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Reductions other than the average: all-reduce, reduce, reduce-scatter."""

from typing import Any

import torch
import torch.distributed as dist

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.checks._ranked import EXACT, FLOATS, SIZES, require_same, settle, total, values
from verl_hw_tools.conformance.numerics import SHORT_NAMES
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import require

_GRADIENTS = "every training with more than one device: gradients are wrong"


@check("collectives.all_reduce.sum", blocks=_GRADIENTS, processes=2)
def all_reduce_sum(bench: Bench) -> None:
    """all_reduce sums, for every size and type."""
    for dtype in (*FLOATS, *EXACT):
        for size in SIZES:
            tensor = values(size, bench.rank, dtype, bench.device)
            dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
            settle(bench)
            require_same(tensor, total(size, range(bench.world_size)), f"SUM of {size} {SHORT_NAMES[dtype]}")


@check("collectives.all_reduce.sum_large", blocks=_GRADIENTS, processes=2)
def all_reduce_sum_large(bench: Bench) -> None:
    """all_reduce sums four million bf16 values."""
    size = 1 << 22
    tensor = values(size, bench.rank, torch.bfloat16, bench.device)
    dist.all_reduce(tensor)
    settle(bench)
    require_same(tensor, total(size, range(bench.world_size)), f"SUM of {size} bf16")


@check(
    "collectives.all_reduce.max_min", blocks="dynamic batch sizes, timings, gradient clipping by maximum", processes=2
)
def all_reduce_max_min(bench: Bench) -> None:
    """all_reduce finds the largest and the smallest."""
    last = bench.world_size - 1
    for dtype in (torch.float32, torch.int64):
        for operation, rank in ((dist.ReduceOp.MAX, last), (dist.ReduceOp.MIN, 0)):
            tensor = values(64, bench.rank, dtype, bench.device)
            dist.all_reduce(tensor, op=operation)
            settle(bench)
            require_same(tensor, values(64, rank, torch.float64, "cpu"), f"{operation} of {SHORT_NAMES[dtype]}")


@check("collectives.all_reduce.product", blocks="nothing in verl itself", processes=2)
def all_reduce_product(bench: Bench) -> None:
    """all_reduce multiplies."""
    tensor = values(5, bench.rank, torch.float32, bench.device)
    dist.all_reduce(tensor, op=dist.ReduceOp.PRODUCT)
    settle(bench)
    wanted = torch.ones(5, dtype=torch.float64)
    for rank in range(bench.world_size):
        wanted = wanted * values(5, rank, torch.float64, "cpu")
    require_same(tensor, wanted, "PRODUCT")


@check("collectives.all_reduce.async", blocks="overlap of communication and computation in FSDP", processes=2)
def all_reduce_async(bench: Bench) -> None:
    """all_reduce with async_op is done after wait(), not before and not never."""
    works, tensors = [], []
    for size in SIZES:
        tensor = values(size, bench.rank, torch.float32, bench.device)
        works.append(dist.all_reduce(tensor, async_op=True))
        tensors.append(tensor)
    for size, tensor, work in zip(SIZES, tensors, works, strict=True):
        require(work is not None, "async_op=True returned None", "a handle to wait for")
        work.wait()
        settle(bench)
        require_same(tensor, total(size, range(bench.world_size)), f"asynchronous SUM of {size}, after wait()")
        require(bool(work.is_completed()), "is_completed() is false after wait() and synchronize()", "true")


@check("collectives.all_reduce.strided", blocks="gradients of transposed parameters", processes=2)
def all_reduce_strided(bench: Bench) -> None:
    """all_reduce of a tensor that is not contiguous is right, or refused."""
    tensor = values(12, bench.rank, torch.float32, bench.device).view(3, 4).t()
    try:
        dist.all_reduce(tensor)
    except (RuntimeError, ValueError) as error:
        # NCCL refuses too; torch's own callers make such tensors contiguous first.
        require("contiguous" in str(error).lower() or "dense" in str(error).lower(), str(error), "the sum or a refusal")
        return
    settle(bench)
    require_same(tensor, total(12, range(bench.world_size)).view(3, 4).t(), "SUM of a transposed tensor")


@check("collectives.reduce.sum", blocks="metrics that rank 0 collects", processes=2)
def reduce_sum(bench: Bench) -> None:
    """Reduce gives the sum to the root, for each rank as root."""
    for root in range(bench.world_size):
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            tensor = values(63, bench.rank, dtype, bench.device)
            dist.reduce(tensor, dst=root)
            settle(bench)
            if bench.rank == root:
                wanted = total(63, range(bench.world_size))
                require_same(tensor, wanted, f"SUM of {SHORT_NAMES[dtype]} at root {root}")


@check("collectives.reduce_scatter.sum", blocks="FSDP and FSDP2: gradients are wrong", processes=2)
def reduce_scatter_sum(bench: Bench) -> None:
    """reduce_scatter_tensor gives each rank its part of the sum."""
    for dtype in FLOATS:
        for size in SIZES:
            _reduce_scatter(bench, size, dtype)


def _reduce_scatter(bench: Bench, size: int, dtype: Any) -> None:
    whole = values(size * bench.world_size, bench.rank, dtype, bench.device)
    part = torch.empty(size, dtype=dtype, device=bench.device)
    dist.reduce_scatter_tensor(part, whole, op=dist.ReduceOp.SUM)
    settle(bench)
    wanted = total(size * bench.world_size, range(bench.world_size)).chunk(bench.world_size)[bench.rank]
    require_same(part, wanted, f"reduce_scatter of {size} {SHORT_NAMES[dtype]}")


@check("collectives.reduce_scatter.list", blocks="FSDP on older torch", processes=2)
def reduce_scatter_list(bench: Bench) -> None:
    """reduce_scatter of a list of tensors gives each rank its part of the sum."""
    parts = [values(7, bench.rank + place, torch.float32, bench.device) for place in range(bench.world_size)]
    result = torch.empty(7, device=bench.device)
    dist.reduce_scatter(result, parts)
    settle(bench)
    require_same(result, total(7, [rank + bench.rank for rank in range(bench.world_size)]), "reduce_scatter of a list")
