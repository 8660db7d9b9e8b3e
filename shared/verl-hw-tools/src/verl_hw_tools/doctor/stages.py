# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a child process tells the doctor, stage by stage, so that a death or a hang is a fact about one stage.

The child appends JSON lines to a file; its own output, of which nobody knows what a vendor prints, goes to a log.
"""

import faulthandler
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verl_hw_core.load_report import describe
from verl_hw_tools.conformance.events import EventWriter

BEGIN, END, ERROR = "stage", "stage_end", "stage_error"

# Part of a stage's deadline after which its stack is written to the log; the doctor ends the process a little later.
_DUMP_AT = 0.8
_MOST_TRACE = 8000


@dataclass(frozen=True, kw_only=True)
class Stage:
    """How a stage ended.

    Attributes:
        name: Its name.
        data: What it found; None when it did not come to its end.
        error: Type and text of what it raised, or how its process ended; empty when all went well.
        trace: Traceback, or the last words of its process.
        died: Whether the process died or hung in this stage.
        seconds: How long it took.
    """

    name: str
    data: Any = None
    error: str = ""
    trace: str = ""
    died: bool = False
    seconds: float = 0.0

    @property
    def went_well(self) -> bool:
        """Whether it came to its end."""
        return not self.error


@dataclass(frozen=True, kw_only=True)
class ChildReport:
    """What a child process found: its stages by name, in the order of their beginning."""

    stages: Mapping[str, Stage] = field(default_factory=dict)

    def data(self, name: str) -> Any:
        """What a stage found; None when it was not reached or failed."""
        stage = self.stages.get(name)
        return None if stage is None else stage.data

    @property
    def died_in(self) -> Stage | None:
        """The innermost stage in which the process died or hung, or None."""
        dead = [stage for stage in self.stages.values() if stage.died]
        return dead[-1] if dead else None


class Stages:
    """The child's side."""

    def __init__(self, folder: Path, deadline: float) -> None:
        self._writer = EventWriter(folder, 0)
        self._deadline = deadline
        self._open: list[str] = []
        faulthandler.enable()

    def attempt(self, name: str, function: Callable[[], Any]) -> bool:
        """Run a stage and say how it ended; whatever it raises ends the stage only. Return whether it went well."""
        try:
            with self.stage(name) as data:
                data["value"] = function()
        except (Exception, SystemExit):  # noqa: BLE001 - already told; a plugin's exit must not end the examination
            return False
        return True

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, Any]]:
        """A stage; put what it finds under "value". What it raises is told and goes on."""
        self._writer.write(BEGIN, stage=name)
        self._open.append(name)
        faulthandler.dump_traceback_later(self._deadline * _DUMP_AT, exit=False)
        data: dict[str, Any] = {}
        try:
            yield data
        except BaseException as error:
            trace = "".join(traceback.format_exception(error))[-_MOST_TRACE:]
            self._writer.write(ERROR, stage=name, error=describe(error), trace=trace)
            raise
        else:
            self._writer.write(END, stage=name, data=data.get("value"))
        finally:
            self._open.remove(name)
            faulthandler.cancel_dump_traceback_later()
            if self._open:
                faulthandler.dump_traceback_later(self._deadline * _DUMP_AT, exit=False)
