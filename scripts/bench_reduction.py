#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What sum-then-divide costs against the backend's own AVG, as a ratio of the time of FSDP2 training steps.

Two processes train one model on CPU over gloo and switch between both ways from step to step, so that a machine that
is busy for a while slows both alike.

    python3 scripts/dev.py run python scripts/bench_reduction.py --max-ratio 1.03
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RANKS = 2
WAYS = {"native AVG": False, "sum then divide": True}
WARM_UP_STEPS = 6


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 when the ratio is above ``--max-ratio``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60, help="measured steps of each way (default: 60)")
    parser.add_argument("--layers", type=int, default=6, help="layers of the model (default: 6)")
    parser.add_argument("--width", type=int, default=768, help="width of a layer (default: 768)")
    parser.add_argument("--max-ratio", type=float, help="exit with status 1 above this")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(argv)
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    seconds = measure(options.steps, options.layers, options.width)
    medians = {way: statistics.median(values) for way, values in seconds.items()}
    ratio = medians["sum then divide"] / medians["native AVG"]
    if options.json:
        print(json.dumps({"seconds": seconds, "ratio": ratio}))
    else:
        for way, values in seconds.items():
            print(
                f"{way:16} {len(values):>4} steps  median {medians[way] * 1e3:8.2f} ms  min {min(values) * 1e3:8.2f} ms"
            )
        print(f"ratio of the medians: {ratio:.3f}")
    too_slow = options.max_ratio is not None and ratio > options.max_ratio
    if too_slow:
        print(f"ratio {ratio:.3f} is above {options.max_ratio}", file=sys.stderr)
    return 1 if too_slow else 0


def measure(steps: int, layers: int, width: int) -> dict[str, list[float]]:
    """Train in two processes and return rank 0's seconds a step, by way."""
    import torch.multiprocessing

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_train, (Path(folder), steps, layers, width), nprocs=RANKS)
        seconds: dict[str, list[float]] = json.loads((Path(folder) / "seconds.json").read_text())
    return seconds


def _train(rank: int, folder: Path, steps: int, layers: int, width: int) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    model = _sharded_model(layers, width, init_device_mesh("cpu", (RANKS,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    inputs = torch.randn(16, width, generator=torch.Generator().manual_seed(rank))
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(WARM_UP_STEPS + 2 * steps):
        way = list(WAYS)[number % 2]
        _switch(model, WAYS[way])
        dist.barrier()
        start = time.perf_counter()
        model(inputs).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if number >= WARM_UP_STEPS:
            seconds[way].append(time.perf_counter() - start)
    if rank == 0:
        (folder / "seconds.json").write_text(json.dumps(seconds))
    dist.destroy_process_group()


def _sharded_model(layers: int, width: int, mesh: Any) -> Any:
    import torch
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def _switch(model: Any, force_sum: bool) -> None:
    """Set the way on every nested FSDP2 module; what verl_hw_core.reduction.force_sum switches on."""
    from torch.distributed.fsdp import FSDPModule

    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(force_sum)


if __name__ == "__main__":
    sys.exit(main())
