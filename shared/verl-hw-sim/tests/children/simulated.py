# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Runs suites of checks in one simulated process: ``simulated.py device_checks:1 collective_checks:2``.

To import torch takes longer than most suites. So this process imports it once, and each suite runs in a fork of it (or
in two: the number after the colon is the number of ranks).
"""

import importlib
import os
import socket
import sys
import time
import traceback

# Ours is called by hand below, to be timed.
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import checks
import torch

import verl_hw_sim
from verl_hw_sim.simulation import active_simulation

imported = time.process_time()
verl_hw_sim.autoload()
print(f"STARTED {time.process_time() / imported - 1:.3f}", flush=True)
del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]


def _fork(suite: str, **variables: str) -> int:
    child = os.fork()
    if child != 0:
        return child
    os.environ.update(variables)
    passed = False
    try:
        passed = checks.run(suite, vars(importlib.import_module(suite)))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if passed else 1)


def _check_exits(times: int) -> None:
    """A process whose last act is a backward ends by the ordinary way out, many times: autograd's threads race it."""
    for _ in range(times):
        child = os.fork()
        if child == 0:
            device = active_simulation().profile.device_name
            x = torch.ones(2, 2, device=device, requires_grad=True)
            y = x.relu() * 2
            y.retain_grad()
            y.sum().backward()
            globals()["kept"] = (x, y)  # the graph dies with the interpreter
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            checks.report("simulated", "check_exits", f"a process ended with {code}")
            return
    checks.report("simulated", "check_exits", None)


def main() -> None:
    _check_exits(times=12)
    for argument in sys.argv[1:]:
        suite, _, ranks = argument.partition(":")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        world = {"WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        children = [_fork(suite, **world, RANK=str(rank), LOCAL_RANK=str(rank)) for rank in range(int(ranks))]
        for child in children:
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
