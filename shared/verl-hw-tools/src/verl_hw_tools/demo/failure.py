# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Find, after a failed torchrun launch, the rank that failed first and the lines that say why."""

import re
import signal
from dataclasses import dataclass
from pathlib import Path

_LINES = 18
_ROOT_CAUSE = re.compile(
    r"Root Cause.*?rank\s*:\s*(?P<rank>\d+) \(local_rank: (?P<local>\d+)\).*?exitcode\s*:\s*(?P<code>-?\d+)", re.DOTALL
)
# torch puts this before each line once a process group exists.
_RANK_PREFIX = re.compile(r"^\[rank\d+\]:\s?")
_TRACEBACK = "Traceback (most recent call last):"
# Lines that say nothing about a failure: torch's and Python's warnings and notes, progress bars.
_NOISE = re.compile(
    r"^(\S*(W|I)\d{4} |\d{4}-\d\d-\d\d |(WARNING|INFO|DEBUG):)|Warning: |^\s*warnings\.warn\(|\d%\|.*\| \d+/\d+ \["
)


@dataclass(frozen=True)
class Failure:
    """Why a launch failed.

    Attributes:
        where: ``"rank 1 (exit code 1)"``, or the launcher itself.
        lines: The last relevant lines.
        log: The full log they are from.
    """

    where: str
    lines: tuple[str, ...]
    log: Path

    def __str__(self) -> str:
        said = [", last lines:", *(f"  {line}" for line in self.lines)] if self.lines else [", which wrote nothing"]
        return "\n".join([self.where + said[0], *said[1:], f"full log: {self.log}"])


def explain(launcher_log: Path, rank_logs: Path, exit_code: int) -> Failure:
    """Describe a failed launch from torchrun's own log and the logs of its ranks."""
    launcher_text = _read(launcher_log)
    cause = _ROOT_CAUSE.search(launcher_text)
    if cause is None:
        return Failure(f"torchrun (exit code {exit_code})", relevant_lines(launcher_text), launcher_log)
    where = f"rank {cause['rank']} (exit code {cause['code']}{_hint(int(cause['code']))})"
    candidates = [log for log in _logs_of(rank_logs, cause["local"]) if relevant_lines(_read(log))]
    if not candidates:
        return Failure(where, relevant_lines(launcher_text), launcher_log)
    log = next((path for path in candidates if _TRACEBACK in _read(path)), candidates[0])
    return Failure(where, relevant_lines(_read(log)), log)


def relevant_lines(text: str) -> tuple[str, ...]:
    """Return the end of the last traceback, or the last lines that are no warnings when there is none."""
    lines = [_RANK_PREFIX.sub("", line).rstrip() for line in text.splitlines()]
    starts = [number for number, line in enumerate(lines) if line.strip() == _TRACEBACK]
    if starts:
        return tuple(_traceback(lines[starts[-1] :])[-_LINES:])
    return tuple([line for line in lines if line and not _NOISE.search(line)][-_LINES:])


def _traceback(lines: list[str]) -> list[str]:
    """The traceback at the start of ``lines``: indented lines, then the exception with its message."""
    end = next((number for number, line in enumerate(lines[1:], 1) if line and not line.startswith(" ")), len(lines))
    message = [line for line in lines[end:] if line and not _NOISE.search(line)]
    frames = [line for line in lines[:end] if line.strip(" ^~")]
    kept = message[: _LINES // 2]
    return frames[-(_LINES - len(kept)) :] + kept


def _logs_of(rank_logs: Path, local_rank: str) -> list[Path]:
    # torchrun writes <run id>_<random>/attempt_<n>/<local rank>/std{err,out}.log; the error is mostly in stderr.
    return [
        *sorted(rank_logs.glob(f"*/attempt_*/{local_rank}/stderr.log")),
        *sorted(rank_logs.glob(f"*/attempt_*/{local_rank}/stdout.log")),
    ]


def _hint(code: int) -> str:
    """Say what a negative exit code means: the signal that ended the process."""
    if code >= 0:
        return ""
    name = signal.Signals(-code).name if -code in set(signal.Signals) else "a signal"
    return f", {name}" + (": most likely the machine ran out of memory" if code == -signal.SIGKILL else "")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
