# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Average a tensor over two ranks asynchronously and wait for the device instead of the returned work.

Usage: ``average_not_waited_for.py FOLDER``. Answers what the tensor then holds on each rank.
"""

import json
import sys
from pathlib import Path

import said  # noqa: F401 - makes the device
import torch
import torch.distributed as dist
from rank_start import run_ranks
from verl.plugin.platform import get_platform

from verl_hw_core import reduction

folder, platform = Path(sys.argv[1]), get_platform()


def average(rank: int) -> list[float]:
    reduction.install(platform.device_name)
    tensor = torch.full((2,), rank + 1.0, device=platform.device_name)
    work = dist.all_reduce(tensor, op=dist.ReduceOp.AVG, async_op=True)
    platform.device_module.synchronize()
    dist.barrier()
    found = tensor.tolist()
    work.wait()
    return found


run_ranks(average, 2, folder, platform.device_name, platform.communication_backend_name())
print(json.dumps({"ranks": [json.loads((folder / f"result-2-{rank}.json").read_text()) for rank in (0, 1)]}))
