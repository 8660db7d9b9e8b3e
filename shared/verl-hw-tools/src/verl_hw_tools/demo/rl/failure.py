# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Find, after a failed PPO run, the lines of the log that say why, and what to do about the causes that are known."""

import re
from pathlib import Path

from verl_hw_tools.demo.failure import Failure
from verl_hw_tools.demo.rl.launch import RAY_STARTED_TOO_SLOWLY

_LINES = 18
# Ray puts this before what another process of the cluster wrote.
_FROM_ANOTHER = re.compile(r"^(\x1b\[\d+m)?\((.{1,80}? )?pid=\d+(, ip=[^)]*)?\)")
# Lines that say nothing about a failure.
_NOISE = re.compile(
    r"^(\S*(W|I)\d{4} |\d{4}-\d\d-\d\d |(WARNING|INFO|DEBUG):|\[\d{4}-\d\d-\d\d)|Warning: |^\s*warnings\.warn\("
    r"|\d%\|.*\| \d+/\d+ \[|^Set the environment variable HYDRA_FULL_ERROR|^\s*[\^~]+\s*$"
)
_REMEDIES = (
    (
        re.compile(f"{RAY_STARTED_TOO_SLOWLY}|Failed to connect to GCS"),
        "Ray gives its own processes 30 s to start, which a busy machine exceeds: end other programs and try again",
    ),
    (
        re.compile(r"AF_UNIX path"),
        "the folder for temporary files has too long a name for Ray's sockets: set TMPDIR to one with a short name",
    ),
    (
        re.compile(r"No space left on device|OutOfDiskError", re.I),
        "the disk is full: free some, or give --output and TMPDIR on another disk",
    ),
    (
        re.compile(r"OutOfMemoryError|ActorDiedError|Worker unexpectedly exits", re.I),
        "a process of the run was ended, most likely for want of memory: end other programs, or use --nproc 1",
    ),
    (
        re.compile("ModuleNotFoundError: "),
        "a package is missing: pip install 'verl-hw-tools[demo]'",
    ),
)


def explain(log: Path, exit_code: int) -> Failure:
    """Describe a failed run from its log: the driver's own last lines, where Ray repeats the error of any process."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines = tuple(_relevant(text))
    remedy = next((remedy for pattern, remedy in _REMEDIES if any(map(pattern.search, lines))), None)
    where = f"verl.trainer.main_ppo (exit code {exit_code})"
    return Failure(where, lines if remedy is None else (*lines, f"What helps: {remedy}"), log)


def _relevant(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.splitlines()]
    own = [line for line in lines if line and not _FROM_ANOTHER.search(line) and not _NOISE.search(line)]
    return (own or [line for line in lines if line])[-_LINES:]
