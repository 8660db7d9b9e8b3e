# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What was run on which stack, and with what result: the records of ``scripts/stacks/results.json``.

A record is one run of one stack on one kind of device. The versions page, the doctor's table of tested versions and the
guides are written from these records (``scripts/write_vendor_docs.py``), so that nothing is claimed that nobody ran.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "stacks" / "results.json"
KINDS = ("simulated", "measured")
OUTCOMES = ("passed", "failed", "skipped")
# Steps that train: versions are called "run with" only where these passed.
TRAINING = frozenset({"sft", "grpo"})
_ABOUT = "What was really run, written by 'scripts/dev.py stack NAME test'. Documents are generated from it; see there."


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """How one step went.

    Attributes:
        name: Step, as "parity".
        outcome: One of :data:`OUTCOMES`; "skipped" is not passed, and "passed" says nothing of tests that it skipped.
        passed: Tests that passed, of a command that is no test suite 1 or 0.
        failed: Tests that failed.
        skipped: Tests that were skipped.
        reason: Why something failed or was skipped; empty where nothing was.
        seconds: Time that the step took.
    """

    name: str
    outcome: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reason: str = ""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Refuse an outcome that its own numbers contradict.

        Raises:
            ValueError: Unknown outcome, or one that does not fit the counts.
        """
        if self.outcome not in OUTCOMES:
            raise ValueError(f"step {self.name}: outcome {self.outcome!r} is none of {', '.join(OUTCOMES)}")
        if self.outcome == "passed" and (self.failed or not self.passed):
            raise ValueError(f"step {self.name}: passed, with {self.passed} passed and {self.failed} failed")
        if (self.outcome != "passed" or self.skipped) and not self.reason:
            raise ValueError(f"step {self.name}: {self.outcome}, and no reason is given")


@dataclass(frozen=True, kw_only=True)
class StackRecord:
    """One run of a stack.

    Attributes:
        stack: Name of the stack's file in ``scripts/stacks``, or of the image it was run in.
        date: Day of the run, as "2026-12-01".
        kind: One of :data:`KINDS`.
        device: What it ran on, as "simulated mlu".
        versions: What was found installed, by distribution, and "python".
        steps: How each step went.
        refused: Why nothing was run, in one line; None where something was.
    """

    stack: str
    date: str
    kind: str
    device: str
    versions: dict[str, str]
    steps: tuple[StepResult, ...]
    refused: str | None = None

    def __post_init__(self) -> None:
        """Refuse a record that says nothing, or of an unknown kind.

        Raises:
            ValueError: Unknown kind; neither steps nor a refusal, or both.
        """
        if self.kind not in KINDS:
            raise ValueError(f"record of {self.stack}: kind {self.kind!r} is none of {', '.join(KINDS)}")
        if bool(self.steps) == bool(self.refused):
            raise ValueError(f"record of {self.stack}: it needs either steps or why it was refused")

    @property
    def trained(self) -> bool:
        """Whether verl trained there: no step failed, and those of :data:`TRAINING` passed."""
        passed = {step.name for step in self.steps if step.outcome == "passed"}
        return passed >= TRAINING and not any(step.outcome == "failed" for step in self.steps)

    @property
    def key(self) -> tuple[str, str, str]:
        """What a later run replaces: the same stack on the same device."""
        return self.stack, self.kind, self.device


def read_records(path: Path = RESULTS) -> tuple[StackRecord, ...]:
    """Return the recorded runs; none where the file is not there."""
    if not path.exists():
        return ()
    records = json.loads(path.read_text(encoding="utf-8"))["records"]
    return tuple(_record(record) for record in records)


def _record(data: dict[str, Any]) -> StackRecord:
    return StackRecord(**{**data, "steps": tuple(StepResult(**step) for step in data["steps"])})


def put_record(record: StackRecord, path: Path = RESULTS) -> None:
    """Add a run to the file, in place of an earlier one of the same stack and device."""
    others = [one for one in read_records(path) if one.key != record.key]
    path.write_text(to_text(sorted([*others, record], key=lambda one: one.key)), encoding="utf-8")


def to_text(records: Iterable[StackRecord]) -> str:
    """Return the file's text: one step a line, so that a change can be read."""
    body = ",\n".join(_lines(record) for record in records)
    return f'{{\n  "about": {json.dumps(_ABOUT)},\n  "records": [\n{body}\n  ]\n}}\n'


def _lines(record: StackRecord) -> str:
    fields = {name: value for name, value in asdict(record).items() if name != "steps"}
    lines = [f"      {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}," for name, value in fields.items()]
    steps = ",\n".join(f"        {json.dumps(asdict(step), ensure_ascii=False)}" for step in record.steps)
    return "    {\n" + "\n".join(lines) + '\n      "steps": [' + (f"\n{steps}\n      " if steps else "") + "]\n    }"
