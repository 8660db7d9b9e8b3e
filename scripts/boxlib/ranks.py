# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The ranks of a step, each a process begun anew: CUDA refuses to work in a fork of a process that imported verl."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from boxlib.answers import WrongError

_LOG_LINES = 8


def run_ranks(
    module: str, arguments: Sequence[str], world_size: int, out: Path, changes: Mapping[str, str | None]
) -> None:
    """Run ``python -m MODULE RANK WORLD_SIZE ARGUMENTS`` once a rank, until all have ended; a deadline is the part's.

    Args:
        module: The program.
        arguments: What it is told besides.
        world_size: Number of ranks.
        out: Folder for ``rank-<rank>.txt``.
        changes: Variables to set, or with None to take away.

    Raises:
        WrongError: A rank failed; the others are ended.
    """
    environment = {name: value for name, value in os.environ.items() if name not in changes}
    environment |= {name: value for name, value in changes.items() if value is not None}
    processes = []
    for rank in range(world_size):
        command = [sys.executable, "-W", "ignore", "-m", module, str(rank), str(world_size), *arguments]
        with (out / f"rank-{rank}.txt").open("w", encoding="utf-8") as log:
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))
    try:
        while any(process.poll() is None for process in processes) and not any(p.returncode for p in processes):
            time.sleep(0.1)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for rank in range(world_size):
        said = (out / f"rank-{rank}.txt").read_text(encoding="utf-8", errors="replace")
        print(f"--- {module} rank {rank}\n{said}", flush=True)
    # One that was killed here did not fail of itself.
    failed = [(rank, process.returncode) for rank, process in enumerate(processes) if process.returncode > 0]
    failed = failed or [(rank, process.returncode) for rank, process in enumerate(processes) if process.returncode]
    if failed:
        rank, code = failed[0]
        lines = (out / f"rank-{rank}.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        raise WrongError("\n".join([f"rank {rank} ended with exit code {code}:", *lines[-_LOG_LINES:]]))
