# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives that move data: broadcast, gather, scatter, all-to-all, point to point, objects."""

from typing import Any

import torch
import torch.distributed as dist

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.checks._ranked import EXACT, FLOATS, SIZES, require_same, settle, values
from verl_hw_tools.conformance.numerics import SHORT_NAMES, require_equal
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import require

_TYPES = (*FLOATS, *EXACT, torch.bool)


def _of_all(size: int, bench: Bench) -> Any:
    return torch.cat([values(size, rank, torch.float64, "cpu") for rank in range(bench.world_size)])


@check("collectives.broadcast", blocks="loading weights on rank 0, weight synchronisation", processes=2)
def broadcast(bench: Bench) -> None:
    """Broadcast gives every rank the root's values, for each rank as root."""
    for root in range(bench.world_size):
        for dtype in _TYPES:
            tensor = values(63, bench.rank, dtype, bench.device)
            dist.broadcast(tensor, src=root)
            settle(bench)
            require_equal(tensor, values(63, root, dtype, "cpu"), f"broadcast of {SHORT_NAMES[dtype]} from {root}")


@check("collectives.all_gather.tensor", blocks="FSDP and FSDP2: parameters are wrong", processes=2)
def all_gather_tensor(bench: Bench) -> None:
    """all_gather_into_tensor puts the ranks' parts in the ranks' order."""
    for dtype in FLOATS:
        for size in SIZES:
            whole = torch.empty(size * bench.world_size, dtype=dtype, device=bench.device)
            dist.all_gather_into_tensor(whole, values(size, bench.rank, dtype, bench.device))
            settle(bench)
            require_same(whole, _of_all(size, bench), f"all_gather_into_tensor of {size} {SHORT_NAMES[dtype]}")


@check("collectives.all_gather.list", blocks="sequence parallelism, metrics", processes=2)
def all_gather_list(bench: Bench) -> None:
    """all_gather puts the ranks' tensors in the ranks' order."""
    for dtype in _TYPES:
        found = [torch.empty(63, dtype=dtype, device=bench.device) for _ in range(bench.world_size)]
        dist.all_gather(found, values(63, bench.rank, dtype, bench.device))
        settle(bench)
        for rank, tensor in enumerate(found):
            require_equal(tensor, values(63, rank, dtype, "cpu"), f"all_gather of {SHORT_NAMES[dtype]}, place {rank}")


@check("collectives.all_gather.async", blocks="prefetching of parameters in FSDP", processes=2)
def all_gather_async(bench: Bench) -> None:
    """all_gather_into_tensor with async_op is done after wait()."""
    whole = torch.full((64 * bench.world_size,), -1.0, device=bench.device)
    work = dist.all_gather_into_tensor(whole, values(64, bench.rank, torch.float32, bench.device), async_op=True)
    work.wait()
    settle(bench)
    require_same(whole, _of_all(64, bench), "asynchronous all_gather_into_tensor, after wait()")


@check("collectives.gather", blocks="collecting results on rank 0", processes=2)
def gather(bench: Bench) -> None:
    """Gather gives the root the ranks' tensors in order."""
    root = bench.world_size - 1
    found = [torch.empty(5, device=bench.device) for _ in range(bench.world_size)] if bench.rank == root else None
    dist.gather(values(5, bench.rank, torch.float32, bench.device), found, dst=root)
    settle(bench)
    for rank, tensor in enumerate(found or []):
        require_same(tensor, values(5, rank, torch.float64, "cpu"), f"gather, place {rank}")


@check("collectives.scatter", blocks="sharding weights from rank 0", processes=2)
def scatter(bench: Bench) -> None:
    """Scatter gives each rank its tensor."""
    parts = [values(5, rank, torch.float32, bench.device) for rank in range(bench.world_size)]
    result = torch.empty(5, device=bench.device)
    dist.scatter(result, parts if bench.rank == 0 else None, src=0)
    settle(bench)
    require_same(result, values(5, bench.rank, torch.float64, "cpu"), "scatter")


@check("collectives.all_to_all.single", blocks="sequence parallelism (Ulysses), expert parallelism", processes=2)
def all_to_all_single(bench: Bench) -> None:
    """all_to_all_single exchanges equal and unequal parts."""
    world, rank = bench.world_size, bench.rank
    for counts in ([3] * world, [place + 1 for place in range(world)]):
        # Rank r sends counts[p] values to p, so that p receives counts[p] values from each.
        sent = torch.cat([_tagged(rank, place, count, bench) for place, count in enumerate(counts)])
        received = torch.empty(counts[rank] * world, device=bench.device)
        dist.all_to_all_single(received, sent, [counts[rank]] * world, counts)
        settle(bench)
        wanted = torch.cat([_tagged(source, rank, counts[rank], bench) for source in range(world)])
        require_equal(received, wanted, f"all_to_all_single of {counts}")


@check("collectives.all_to_all.list", blocks="expert parallelism", processes=2)
def all_to_all_list(bench: Bench) -> None:
    """all_to_all exchanges lists of tensors."""
    world = range(bench.world_size)
    received = [torch.empty(4, device=bench.device) for _ in world]
    dist.all_to_all(received, [_tagged(bench.rank, place, 4, bench) for place in world])
    settle(bench)
    for source, tensor in enumerate(received):
        require_equal(tensor, _tagged(source, bench.rank, 4, bench), f"all_to_all from rank {source}")


def _tagged(source: int, target: int, count: int, bench: Bench) -> Any:
    return torch.arange(count, dtype=torch.float32, device=bench.device) + 100 * source + 10 * target


@check("collectives.p2p.send_recv", blocks="pipeline parallelism, weight transfer", processes=2)
def send_recv(bench: Bench) -> None:
    """Send and recv pass values around the ring."""
    after, before = (bench.rank + 1) % bench.world_size, (bench.rank - 1) % bench.world_size
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        received = torch.empty(63, dtype=dtype, device=bench.device)
        sent = values(63, bench.rank, dtype, bench.device)
        if bench.rank % 2 == 0:
            dist.send(sent, after)
            dist.recv(received, before)
        else:
            dist.recv(received, before)
            dist.send(sent, after)
        settle(bench)
        require_equal(received, values(63, before, dtype, "cpu"), f"recv of {SHORT_NAMES[dtype]} from {before}")


@check("collectives.p2p.batched", blocks="pipeline parallelism, ring attention", processes=2)
def batched_p2p(bench: Bench) -> None:
    """batch_isend_irecv passes values around the ring."""
    after, before = (bench.rank + 1) % bench.world_size, (bench.rank - 1) % bench.world_size
    received = torch.empty(64, device=bench.device)
    sent = values(64, bench.rank, torch.float32, bench.device)
    operations = [dist.P2POp(dist.isend, sent, after), dist.P2POp(dist.irecv, received, before)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    settle(bench)
    require_same(received, values(64, before, torch.float64, "cpu"), f"irecv from {before}")


@check("collectives.objects", blocks="start of training, metrics, checkpoints", processes=2)
def objects(bench: Bench) -> None:
    """Python objects are gathered and broadcast."""
    mine = {"rank": bench.rank, "text": "x" * (10 + 1000 * bench.rank)}
    found: list[Any] = [None] * bench.world_size
    dist.all_gather_object(found, mine)
    require([item["rank"] for item in found] == list(range(bench.world_size)), f"{found}"[:200], "the ranks in order")
    require(len(found[-1]["text"]) == 10 + 1000 * (bench.world_size - 1), "a text of another length", "the sender's")
    for root in range(bench.world_size):
        sent: list[Any] = [mine if bench.rank == root else None, None]
        dist.broadcast_object_list(sent, src=root)
        require(sent[0]["rank"] == root, f"object of rank {sent[0]['rank']}", f"object of rank {root}")
