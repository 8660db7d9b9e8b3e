# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The probe of SUM and AVG: sound libraries pass at any size, and one rank's fault is every rank's verdict."""

import threading
from types import SimpleNamespace

import pytest
from machine_speed import scaled

from verl_hw_core.errors import ReductionError
from verl_hw_core.reduction import probe


@pytest.mark.parametrize("ranks", [2, 3, 24, 32, 64, 500, 4096])
def test_a_library_that_rounds_after_every_addition_passes(ranks):
    """bfloat16 holds eight bits: a plain running sum of rank + 1 is 2 % off from 32 ranks on."""
    import torch
    import torch.distributed as dist

    for name in probe.TOLERANCE:
        running = torch.zeros(1, dtype=getattr(torch, name))
        for rank in range(ranks):
            running += probe._mine(name, rank)
        wanted = probe._expected(name, ranks, dist.ReduceOp.SUM)
        assert running.double().item() == pytest.approx(wanted, rel=probe.TOLERANCE[name], abs=0)


class Library:
    """Reductions over threads as ranks; ``fault`` is added on rank 1 to reduce-scatter with the given operation."""

    def __init__(self, ranks, faulty_op):
        self.ranks, self.faulty_op = ranks, faulty_op
        self.barrier = threading.Barrier(ranks, timeout=scaled(20))
        self.board = {}
        self.issued = [[] for _ in range(ranks)]

    def reduce(self, rank, name, tensor, op):
        import torch
        import torch.distributed as dist

        self.issued[rank].append((name, str(op), tensor.numel()))
        self.board[rank] = tensor.clone()
        self.barrier.wait()
        stacked = torch.stack([self.board[other] for other in range(self.ranks)])
        self.barrier.wait()
        if op == dist.ReduceOp.MAX:
            return stacked.amax(0)
        total = stacked.sum(0) / (self.ranks if op == dist.ReduceOp.AVG else 1)
        return total + 1 if rank == 1 and name == "reduce_scatter" and op == self.faulty_op else total


def run_probe(monkeypatch, faulty_op):
    """The probe's result or error on each of three ranks, and what each rank issued."""
    import torch
    import torch.distributed as dist

    library = Library(3, faulty_op)
    local = threading.local()

    def original(name):
        def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None):
            tensor.copy_(library.reduce(local.rank, "all_reduce", tensor, op))

        def reduce_scatter_tensor(shard, full, op=dist.ReduceOp.SUM, group=None):
            whole = library.reduce(local.rank, "reduce_scatter", full, op)
            shard.copy_(whole[local.rank * shard.numel() : (local.rank + 1) * shard.numel()])

        return {"all_reduce": all_reduce, "reduce_scatter_tensor": reduce_scatter_tensor}[name]

    monkeypatch.setattr(probe, "original", original)
    monkeypatch.setattr(dist, "get_rank", lambda group=None: local.rank)
    monkeypatch.setattr(dist, "get_world_size", lambda group=None: 3)
    group = SimpleNamespace(size=lambda: 3, _get_backend=lambda device: SimpleNamespace(name=lambda: "accl"))
    answers = [None] * 3

    def rank_main(rank):
        local.rank = rank
        try:
            answers[rank] = probe.probe(group, torch.device("cpu"))
        except ReductionError as error:
            answers[rank] = error

    threads = [threading.Thread(target=rank_main, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(60))
    return answers, library.issued


def test_all_ranks_pass_a_sound_library(monkeypatch):
    answers, _ = run_probe(monkeypatch, faulty_op=None)
    assert [answer.avg_works for answer in answers] == [True] * 3


def test_a_wrong_average_on_one_rank_is_every_ranks_verdict(monkeypatch):
    import torch.distributed as dist

    answers, issued = run_probe(monkeypatch, dist.ReduceOp.AVG)
    assert [answer.avg_works for answer in answers] == [False] * 3
    assert "AVG is wrong: reduce_scatter of 1 float32 elements" in answers[1].why
    assert answers[0].why == "another rank of the group saw a wrong answer"
    assert issued[0] == issued[1] == issued[2], "ranks that issue different operations hang"


def test_a_wrong_sum_on_one_rank_stops_every_rank(monkeypatch):
    import torch.distributed as dist

    answers, issued = run_probe(monkeypatch, dist.ReduceOp.SUM)
    assert all(isinstance(answer, ReductionError) for answer in answers)
    assert issued[0] == issued[1] == issued[2]
