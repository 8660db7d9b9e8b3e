# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run one of the doctor's programs in a process of its own, with a deadline a stage, and read what it told."""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import Any

from verl_hw_core.processes import run_launcher
from verl_hw_tools.conformance.events import EventReader
from verl_hw_tools.demo.failure import relevant_lines
from verl_hw_tools.doctor.stages import BEGIN, END, ChildReport, Stage

_NO_LIMIT = 3600.0 * 24  # the deadline of the stages ends what takes too long
_START_SECONDS = 30.0
_LONGEST_LINE = 200


class _OverdueError(Exception):
    """The process has to be ended."""


def run_child(
    program: str,
    arguments: Sequence[str],
    *,
    deadline: float,
    stop: threading.Event,
    environment: Mapping[str, str] | None = None,
) -> ChildReport:
    """Run ``python -m verl_hw_tools.doctor.programs.<program> FOLDER DEADLINE ARGUMENTS...`` and return its stages.

    Whatever way it ends, no process of it is left.

    Args:
        program: Name of the module.
        arguments: Its arguments.
        deadline: Seconds that a stage may take.
        stop: Ends the process early when it is set.
        environment: Its environment; this process's when left out.
    """
    with tempfile.TemporaryDirectory(prefix="verl-hw-doctor-", ignore_cleanup_errors=True) as name:
        folder, log = Path(name), Path(name) / "log.txt"
        follower = _Follower(folder, deadline, stop)
        how = ""
        try:
            code = run_launcher(
                [sys.executable, "-m", f"verl_hw_tools.doctor.programs.{program}", name, str(deadline), *arguments],
                environment=_absolute(dict(os.environ if environment is None else environment)),
                folder=folder,
                log=log,
                watch=follower.look,
                stall_seconds=_NO_LIMIT,
            )
            how = _ending(code)
        except _OverdueError as overdue:
            how = str(overdue)
        follower.read()
        return ChildReport(stages=follower.stages(how, _last_words(log)))


class _Follower:
    """The stages of a child, from the file that it writes."""

    def __init__(self, folder: Path, deadline: float, stop: threading.Event) -> None:
        self._reader = EventReader(folder, 0)
        self._deadline, self._stop = deadline, stop
        self._stages: dict[str, Stage | None] = {}
        self._begun: dict[str, float] = {}
        self._heard = time.monotonic()

    def look(self) -> None:
        """Read what is new.

        Raises:
            _OverdueError: A stage took too long, or nobody waits any more.
        """
        self.read()
        if self._stop.is_set():
            raise _OverdueError("the doctor was interrupted")
        limit = self._deadline if self._begun else max(self._deadline, _START_SECONDS)
        if time.monotonic() - self._heard > limit:
            raise _OverdueError(f"no answer within {limit:.0f} s, so it was ended")

    def read(self) -> None:
        """Read what is new."""
        for event in self._reader.read():
            self._heard = time.monotonic()
            self._take(event)

    def stages(self, how: str, last_words: str) -> dict[str, Stage]:
        """Return all stages; those still open ended with their process."""
        found = {}
        if not self._stages:
            return {"start": Stage(name="start", error=how or "it said nothing", trace=last_words, died=True)}
        for name, stage in self._stages.items():
            if stage is None:
                stage = Stage(name=name, error=how or "the process ended", trace=last_words, died=True)
            found[name] = stage
        return found

    def _take(self, event: dict[str, Any]) -> None:
        name = event["stage"]
        if event["event"] == BEGIN:
            self._stages[name] = None
            self._begun[name] = event["at"]
            return
        seconds = event["at"] - self._begun[name]
        if event["event"] == END:
            self._stages[name] = Stage(name=name, data=event["data"], seconds=seconds)
        else:
            self._stages[name] = Stage(name=name, error=event["error"], trace=event["trace"], seconds=seconds)


def _ending(code: int) -> str:
    if code >= 0:
        return f"the process ended itself with exit code {code}"
    name = Signals(-code).name if -code in set(Signals) else f"signal {-code}"
    return f"the process was ended by {name}"


def _last_words(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return "\n".join(line[:_LONGEST_LINE] for line in relevant_lines(text))


def _absolute(environment: dict[str, str]) -> dict[str, str]:
    """The child runs in another folder, so relative entries of PYTHONPATH must not depend on it."""
    entries = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if entries:
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in entries)
    return environment
