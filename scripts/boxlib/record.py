# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The results of one run of a box: written by ``run_box.py``, read by the support page. Standard library only."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1
PASSED, FAILED, NOT_RUN = OUTCOMES = ("passed", "failed", "not run")
MEASURED, SIMULATED = KINDS = ("measured", "simulated")


class RecordError(Exception):
    """A results file is not what it should be; the message names the file and says what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that was tried.

    Attributes:
        name: Short name, as ``"sft"``.
        title: What it shows when it passes.
        outcome: ``"passed"``, ``"failed"`` or ``"not run"``.
        reason: Why it failed or was not run; empty where it passed.
        figures: What was measured, by name; units are in the names.
        seconds: How long it took.
    """

    name: str
    title: str
    outcome: str
    reason: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run.

    Attributes:
        vendor: Platform key of the wheel that drove the device.
        device: Name of the device, as its driver has it.
        device_type: torch device type.
        devices: How many devices were visible.
        vendors_own: Whether detection takes this machine for the vendor's; False for a wheel that drives another
            vendor's device, as ``verl-hw-metax`` does on a CUDA machine.
        kind: ``"measured"`` or ``"simulated"``.
        date: Start, ISO 8601, UTC.
        revision: Commit that the box was built from.
        versions: Version by distribution, and ``"python"``.
        seconds: How long everything took.
        steps: What was tried.
    """

    vendor: str
    device: str
    device_type: str
    devices: int
    vendors_own: bool
    kind: str
    date: str
    revision: str
    versions: dict[str, str]
    seconds: float
    steps: tuple[Step, ...]

    @property
    def passed(self) -> bool:
        """Whether something passed and nothing failed."""
        return bool(self.count(PASSED)) and not self.count(FAILED)

    def count(self, outcome: str) -> int:
        """Return how many steps ended so."""
        return sum(step.outcome == outcome for step in self.steps)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all: a machine may be taken away while it is written."""
        temporary = path.with_suffix(".tmp")
        content = json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2, allow_nan=False)
        temporary.write_text(content + "\n", encoding="utf-8")
        temporary.replace(path)


def read(path: Path) -> Record:
    """Read a results file.

    Raises:
        RecordError: It is no results file, of another schema, or says something that no run says.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        schema = data.pop("schema")
        if schema != SCHEMA:
            raise RecordError(f"{path.name}: schema {schema}, and this is a reader of schema {SCHEMA}")
        record = Record(**{**data, "steps": tuple(Step(**step) for step in data["steps"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{path.name}: no results file of a box ({type(error).__name__}: {error})") from error
    if record.kind not in KINDS:
        raise RecordError(f"{path.name}: kind {record.kind!r}, wanted one of {', '.join(KINDS)}")
    wrong = [step.outcome for step in record.steps if step.outcome not in OUTCOMES]
    if wrong:
        raise RecordError(f"{path.name}: outcome {wrong[0]!r}, wanted one of {', '.join(OUTCOMES)}")
    if [step.name for step in record.steps if step.outcome != PASSED and not step.reason]:
        raise RecordError(f"{path.name}: a step that did not pass says no reason")
    return record


def measured(folder: Path) -> list[Record]:
    """Return the records of a folder, oldest first. A missing folder has none.

    Raises:
        RecordError: A file is no record, or its run was on a simulated device, which is no measurement.
    """
    records = [(path, read(path)) for path in sorted(folder.glob("*.json"))]
    for path, record in records:
        if record.kind != MEASURED:
            raise RecordError(f"{path.name}: {record.kind}; only what was measured on a device belongs here")
    return sorted((record for _, record in records), key=lambda record: record.date)


def table(steps: Iterable[Step]) -> str:
    """Return the steps as lines for a terminal."""
    rows = [(step.name, step.outcome, f"{step.seconds:.0f} s", step.reason or _figures(step)) for step in steps]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = []
    for name, outcome, seconds, said in rows:
        first = said.partition("\n")[0]
        lines.append(f"{name:<{widths[0]}}  {outcome:<{widths[1]}}  {seconds:>{widths[2]}}  {first}".rstrip())
    return "\n".join(lines)


def _figures(step: Step) -> str:
    plain = {name: value for name, value in step.figures.items() if isinstance(value, int | float | str)}
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in plain.items()
    )
