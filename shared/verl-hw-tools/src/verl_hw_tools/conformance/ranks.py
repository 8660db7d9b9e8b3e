# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m verl_hw_tools.conformance.ranks FOLDER``: start the ranks of a launch and end with the first that fails.

What torchrun does, without importing torch (which takes seconds), and it keeps each rank's exit status: a rank that
died of a signal is the cause, the others only noticed.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from verl_hw_tools.conformance.events import EXITS_FILE, log_file
from verl_hw_tools.conformance.job import Job

_POLL_SECONDS = 0.05
# Time for the other ranks to notice and to say so.
_GRACE_SECONDS = 2.0


def main(folder: Path) -> int:
    """Run the ranks of the job in ``folder``; returns 0 when all of them ended well."""
    job = Job.read(folder)
    processes = _start(folder, job.processes)
    try:
        _wait(processes)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
    # A rank that had to be killed here is no cause: it has no status of its own.
    statuses = [process.returncode for process in processes]
    (folder / EXITS_FILE).write_text(json.dumps(statuses), encoding="utf-8")
    return int(any(status != 0 for status in statuses))


def _start(folder: Path, count: int) -> "list[subprocess.Popen[bytes]]":
    environment = {
        **os.environ,
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
    }
    processes = []
    for rank in range(count):
        with log_file(folder, rank).open("ab") as log:
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "verl_hw_tools.conformance.child", str(folder)],
                    env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )
    return processes


def _wait(processes: "list[subprocess.Popen[bytes]]") -> None:
    """Return when all have ended, or a while after one has ended badly. The command sets the time limits."""
    failed_since: float | None = None
    while any(process.poll() is None for process in processes):
        if failed_since is None and any(process.poll() for process in processes):
            failed_since = time.monotonic()
        if failed_since is not None and time.monotonic() - failed_since > _GRACE_SECONDS:
            return
        time.sleep(_POLL_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
