# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The ranks of a test program: forked from the process that has imported all they need, joined as in verl."""

import json
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing


def run_ranks(work: Callable[[int], Any], world_size: int, out: Path, device: str, ccl: str) -> None:
    """Run ``work(rank)`` on every rank; what it returns is written to ``out/result-<world size>-<rank>.json``.

    Args:
        work: The rank's part. What it raises is written to ``out/error-<world size>-<rank>.txt``.
        world_size: Number of ranks.
        out: Folder of the files.
        device: torch device type.
        ccl: The device's collective backend.
    """
    torch.multiprocessing.start_processes(
        _run_rank, (work, world_size, out, device, ccl), nprocs=world_size, start_method="fork"
    )


@contextmanager
def joined(rank: int, world_size: int, out: Path, device: str, ccl: str) -> Iterator[None]:
    """Select the rank's device and open the default process group, as verl's workers do."""
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size))
    if device != "cpu":
        torch.get_device_module(device).set_device(rank)
    backend = ccl if device == "cpu" else f"cpu:gloo,{device}:{ccl}"
    store = f"file://{out}/rendezvous-{world_size}"
    dist.init_process_group(backend, init_method=store, rank=rank, world_size=world_size)
    yield
    dist.barrier()
    dist.destroy_process_group()


def _run_rank(rank: int, work: Callable[[int], Any], world_size: int, out: Path, device: str, ccl: str) -> None:
    with joined(rank, world_size, out, device, ccl):
        try:
            result = work(rank)
        except Exception:
            (out / f"error-{world_size}-{rank}.txt").write_text(traceback.format_exc())
            raise
        (out / f"result-{world_size}-{rank}.json").write_text(json.dumps(result))
