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
import torch  # noqa: F401

import verl_hw_sim

started = time.perf_counter()
cpu_started = time.process_time()
verl_hw_sim.autoload()
print(f"STARTED {time.perf_counter() - started:.3f} {time.process_time() - cpu_started:.3f}", flush=True)
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


def main() -> None:
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
