# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The supervisor of child processes: runs one launcher with all its descendants, and ends them all, whatever happens.

torchrun starts each worker in a session of its own, so ending the launcher's process group is not enough. Every
process of a launch inherits a mark in its environment, by which stray ones are found afterwards.

``python -m verl_hw_core.processes MARK`` is the guard of a launch: a command that gets SIGKILL (kill -9, the kernel's
out-of-memory killer) can end nothing itself. The guard waits at the other end of a pipe, which the kernel closes when
the command is gone.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from verl_hw_core.errors import TrainingFailedError

MARK_ENV = "VERL_HW_LAUNCH_ID"

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 8.0
_ALL_IS_WELL = b"."


def run_launcher(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    watch: Callable[[], object],
    stall_seconds: float,
) -> int:
    """Run a launcher until it ends, and return its exit code. No process of it is left, whatever way this ends.

    Args:
        command: Program and arguments.
        environment: Its whole environment.
        folder: Its working directory.
        log: File for its output.
        watch: Called several times a second. What it returns is compared with what it returned before: a launch
            whose value stays the same for ``stall_seconds`` makes no progress.
        stall_seconds: How long it may make none.

    Raises:
        TrainingFailedError: It made no progress for too long.
    """
    mark = uuid.uuid4().hex
    process: subprocess.Popen[bytes] | None = None
    with guarded(mark), log.open("wb") as output:
        try:
            process = subprocess.Popen(
                list(command),
                cwd=folder,
                env={**environment, MARK_ENV: mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            _follow(process, watch, stall_seconds, log)
        finally:
            _end_even_if_interrupted(process, mark)
    watch()
    return process.returncode


def marked_processes(mark: str) -> list[int]:
    """Process ids of all living processes that inherited ``mark``."""
    wanted = f"{MARK_ENV}={mark}".encode()
    found = []
    # Where there is no /proc, the end of the process group has to do.
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        if entry.name.isdecimal():
            # A process may end while it is looked at, and others' processes cannot be read.
            with suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def _follow(process: "subprocess.Popen[bytes]", watch: Callable[[], object], stall_seconds: float, log: Path) -> None:
    seen, since = watch(), time.monotonic()
    while process.poll() is None:
        time.sleep(_POLL_SECONDS)
        state = watch()
        if state != seen:
            seen, since = state, time.monotonic()
        elif time.monotonic() - since > stall_seconds:
            raise TrainingFailedError(
                f"the training processes made no progress for {stall_seconds:.0f} s and were ended; full log: {log}"
            )


def _end_even_if_interrupted(process: "subprocess.Popen[bytes] | None", mark: str) -> None:
    try:
        _end(process, mark)
    except BaseException:
        # An interrupt. Only the first signal raises (see cli/interrupt.py), so this second time is not disturbed.
        _end(process, mark)
        raise


def _end(process: "subprocess.Popen[bytes] | None", mark: str) -> None:
    """Ask the launcher to end (it ends its workers), then kill whatever of the launch is left."""
    if process is not None and process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_GRACE_SECONDS)
    kill_marked(mark, process)


def kill_marked(mark: str, launcher: "subprocess.Popen[bytes] | None" = None) -> None:
    """Kill all living processes that inherited ``mark``; ``launcher`` is a child of this process among them."""
    deadline = time.monotonic() + _GRACE_SECONDS
    while (stray := marked_processes(mark)) and time.monotonic() < deadline:
        for pid in stray:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if launcher is not None:
            launcher.poll()  # reap it, or it stays in the list as a zombie
        time.sleep(0.05)


@contextmanager
def guarded(mark: str) -> Iterator[None]:
    """While this runs, the processes that carry ``mark`` end with the calling process, whatever ends it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VERL_")}
    guard = subprocess.Popen(
        [sys.executable, "-m", "verl_hw_core.processes", mark],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what is sent to the command's group must not reach it
    )
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            guard.communicate(_ALL_IS_WELL)


def guard(mark: str) -> None:
    """Wait for the command's word, or for its death."""
    if sys.stdin.buffer.read() != _ALL_IS_WELL:
        kill_marked(mark)


if __name__ == "__main__":
    guard(sys.argv[1])
