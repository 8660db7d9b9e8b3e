# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of a run, in the order of their worth, each in processes of its own and with a deadline."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from boxlib.record import FAILED, NOT_RUN, Step

BUDGET_SECONDS = 480.0
# Kept for ending a part that is overdue and for writing the results.
_RESERVE_SECONDS = 12.0
_LOG_LINES = 6


class OverdueError(Exception):
    """A part has used up its time."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A program of the box.

    Attributes:
        module: Module below ``boxlib.programs``.
        steps: What it tries: name and title.
        deadline: Seconds after which it is ended.
        least: Seconds below which it is not begun.
    """

    module: str
    steps: Mapping[str, str]
    deadline: float
    least: float


PARTS = (
    Part(
        module="engines",
        steps={
            "parity": "verl's FSDP and FSDP2 engines on one device give the numbers of a CPU; checkpoints replay",
            "parity-ranks": "the same on several devices",
        },
        deadline=150,
        least=45,
    ),
    Part(
        module="check",
        steps={
            "check": "verl-hw check on one device: operators, copies, memory, streams, random state and more",
            "check-ranks": "verl-hw check over several devices: collectives, sharded training",
        },
        deadline=180,
        least=45,
    ),
    Part(
        module="sft",
        steps={"sft": "verl's SFT trainer; a resume in new processes repeats the steps exactly"},
        deadline=150,
        least=45,
    ),
    Part(
        module="grpo",
        steps={"grpo": "verl's GRPO on Ray: rollout, reward, training and weight sync, step by step"},
        deadline=210,
        least=60,
    ),
    Part(
        module="base",
        steps={"base-engine": "our engine and verl's own on the same device: equal numbers, and time of a step"},
        deadline=90,
        least=30,
    ),
    Part(
        module="weights",
        steps={
            "transfer-shm": "weights to another process on the same device through shared memory",
            "transfer-ipc": "the same by a handle of device memory",
            "sync-host": "verl's checkpoint engine between processes, over gloo",
            "sync-device": "the same over the device's collective library",
        },
        deadline=90,
        least=30,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a part's program is told.

    Attributes:
        vendor: Platform key.
        device_type: torch device type.
        devices: Visible devices.
        simulated: Whether they are simulated.
        folder: The part's own folder.
        stretch: What deadlines are multiplied by.
    """

    vendor: str
    device_type: str
    devices: int
    simulated: bool
    folder: str
    stretch: float = 1.0

    @property
    def answers(self) -> Path:
        """File to which the program appends a JSON line as soon as a step has ended."""
        return Path(self.folder) / "answers.jsonl"


Launch = Callable[[Sequence[str], Path, Path, Callable[[], object]], int]
"""Runs a command in a folder, with a log file and something to call several times a second; returns the exit code."""


def run_parts(
    parts: Sequence[Part], job: Callable[[Path], Job], work: Path, end: float, launch: Launch
) -> Iterator[tuple[Part, list[Step], Path]]:
    """Run the parts until the time is up.

    Args:
        parts: The parts.
        job: Gives the job of a part's folder.
        work: Folder for those of the parts.
        end: When the run must be over, on :func:`time.monotonic`'s clock.
        launch: Runs a program.

    Yields:
        Each part with its steps and its log, in order; parts that there was no time for as well.
    """
    for part in parts:
        folder = work / part.module
        log = folder / "log.txt"
        left = end - _RESERVE_SECONDS - time.monotonic()
        if left < part.least:
            reason = f"{max(0.0, left):.0f} s were left of the run's time, and it needs {part.least:.0f}"
            yield part, [Step(name=n, title=t, outcome=NOT_RUN, reason=reason) for n, t in part.steps.items()], log
            continue
        folder.mkdir(parents=True)
        yield part, _run(part, job(folder), folder, log, left, launch), log


def _run(part: Part, job: Job, folder: Path, log: Path, left: float, launch: Launch) -> list[Step]:
    began, deadline = time.monotonic(), min(part.deadline * job.stretch, left)

    def watch() -> int:
        if time.monotonic() - began > deadline:
            raise OverdueError
        return 0

    (folder / "job.json").write_text(json.dumps(vars(job)), encoding="utf-8")
    try:
        code = launch(
            [sys.executable, "-W", "ignore", "-m", f"boxlib.programs.{part.module}", "job.json"], folder, log, watch
        )
        said = f"the program ended with exit code {code}; its last lines:\n{_last_lines(log)}"
    except OverdueError:
        said = f"not over after {deadline:.0f} s, and ended; its last lines:\n{_last_lines(log)}"
    return steps_of(part, job.answers, said, time.monotonic() - began)


def steps_of(part: Part, answers: Path, said: str, seconds: float) -> list[Step]:
    """Return a step for each of the part's: as answered, or that there was no answer.

    Args:
        part: The part.
        answers: What its program has written.
        said: How the program ended.
        seconds: How long it ran.
    """
    lines = answers.read_text(encoding="utf-8").split("\n")[:-1] if answers.exists() else []
    answered = {answer["name"]: answer for answer in map(json.loads, lines)}
    steps = []
    for name, title in part.steps.items():
        if name in answered:
            steps.append(Step(**{**answered[name], "title": title}))
            continue
        # The first without an answer is where the program ended; what was to come behind it was not tried.
        first = all(step.name in answered for step in steps)
        spent = max(0.0, seconds - sum(step.seconds for step in steps))
        reason = said if first else "the part ended before it"
        steps.append(
            Step(name=name, title=title, outcome=FAILED if first else NOT_RUN, reason=reason, seconds=spent * first)
        )
    return steps


def _last_lines(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return "\n".join([line for line in text.splitlines() if line.strip()][-_LOG_LINES:]) or "(it said nothing)"
