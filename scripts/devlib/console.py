# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Messages and child processes."""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class DevError(Exception):
    """Something the person at the keyboard can put right; the message says how."""


class InterruptedByUser(Exception):  # noqa: N818 - not an error
    """Ctrl-C, after the child process has ended."""


def say(message: str) -> None:
    """Print one line of our own, so that it is told apart from a tool's output."""
    print(f"dev.py: {message}", flush=True)


def call(command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit status.

    The terminal sends Ctrl-C to the child as well, so the first one only lets it tidy up; the second ends it.
    A SIGTERM is passed on, so that nothing is left running.

    Raises:
        InterruptedByUser: Ctrl-C was pressed.
    """
    process = subprocess.Popen(command, cwd=cwd, env=env)

    def pass_on(signum: int, frame: FrameType | None) -> None:
        process.terminate()
        raise SystemExit(EXIT_TERMINATED)

    previous = signal.signal(signal.SIGTERM, pass_on)
    interrupts = 0
    try:
        while True:
            try:
                status = process.wait()
                break
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts > 1:
                    process.terminate()
    finally:
        signal.signal(signal.SIGTERM, previous)
    if interrupts:
        raise InterruptedByUser
    return status if status >= 0 else 128 - status


@dataclass
class Phases:
    """Runs commands one after the other, times each and remembers which failed."""

    cwd: Path
    env: Mapping[str, str]
    times: list[tuple[str, float, int]] = field(default_factory=list)

    def run(self, name: str, command: Sequence[str]) -> int:
        """Run one phase and return its exit status."""
        say(f"== {name}")
        start = time.monotonic()
        status = call(command, cwd=self.cwd, env=self.env)
        seconds = time.monotonic() - start
        self.times.append((name, seconds, status))
        verdict = "ok" if status == 0 else f"FAILED (exit status {status})"
        say(f"== {name}: {verdict}, {seconds:.1f} s")
        return status

    @property
    def failed(self) -> list[str]:
        """Names of the phases that failed so far."""
        return [name for name, _, status in self.times if status != 0]

    def summary(self) -> str:
        """One line: each phase with its time, and which failed."""
        parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds, _ in self.times)
        return f"{parts}; FAILED: {', '.join(self.failed)}" if self.failed else f"{parts}; all ok"


def fail(message: str) -> int:
    """Report a :class:`DevError` and return the exit status for it."""
    print(f"dev.py: {message}", file=sys.stderr, flush=True)
    return 2
