# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What is written from the recorded runs of the stacks: tables for the documents, and the doctor's tested versions."""

import json
import re
from collections.abc import Mapping, Sequence

from devlib.stack_record import StackRecord, StepResult
from devlib.stack_steps import STEPS
from devlib.stacks import ROOT, TESTED_VERSIONS, Stack, read_stack, refusal, stack_names

# A package that only this step uses counts as run only where the step passed.
_STEP_OF = {"megatron-core": "megatron", "mbridge": "megatron"}
_SHOWN = ("python", "torch", "ray", "transformers", "numpy", "verl")


def versions_run(records: Sequence[StackRecord], package: str) -> list[str]:
    """Return the versions of a package with which verl trained, in order."""
    found = {
        record.versions[package]
        for record in records
        if record.trained and package in record.versions and _used(record, package)
    }
    return sorted(found, key=_parts)


def locked_versions() -> dict[str, str]:
    """Return the versions of the locked environment, in which CI runs; nothing lands that fails there."""
    lock = (ROOT / "uv.lock").read_text(encoding="utf-8")
    found = dict(re.findall(r'^name = "([^"]+)"\nversion = "([^"]+)"', lock, re.MULTILINE))
    return {**found, "python": (ROOT / ".python-version").read_text(encoding="utf-8").strip()}


def tested_versions(records: Sequence[StackRecord], locked: Mapping[str, str]) -> str:
    """Return the text of ``tested_versions.json`` with the release series that were run.

    Args:
        records: Recorded runs of stacks.
        locked: Versions with which CI runs every test.
    """
    data = json.loads(TESTED_VERSIONS.read_text(encoding="utf-8"))
    rows = []
    for row in data["packages"]:
        run = {*versions_run(records, row["name"]), *([locked[row["name"]]] if row["name"] in locked else [])}
        series = [".".join(version.split(".")[:2]) for version in sorted(run, key=_parts)]
        rows.append({**row, "tested": list(dict.fromkeys(series))})
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    return f'{{\n  "about": {json.dumps(data["about"])},\n  "packages": [\n{lines}\n  ]\n}}\n'


def stack_table(records: Sequence[StackRecord], vendor: str | None = None) -> str:
    """Return the table of stacks with what ran on each, and under it why the rest did not.

    Args:
        records: Recorded runs.
        vendor: Vendor whose stacks are wanted; None: all.
    """
    stacks = {name: read_stack(name) for name in stack_names()}
    mine = [one for one in records if vendor is None or (one.stack in stacks and stacks[one.stack].vendor == vendor)]
    if not mine:
        return "No stack of this vendor has been run yet.\n"
    rows = [["stack", *_SHOWN, "on", "passed", "not run or failed"], ["---"] * (len(_SHOWN) + 4)]
    notes = []
    for record in mine:
        stack = stacks.get(record.stack)
        rows.append([_link(stack, vendor) if stack else record.stack, *_versions(record, stack), *_results(record)])
        notes += [f"- {record.stack}, {note}" for note in _notes(record)]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in rows)
    return table + "\n" + ("\n" + "\n".join(notes) + "\n" if notes else "")


def simulator_table(records: Sequence[StackRecord]) -> str:
    """Return with which torch and Python the simulator's own device tests were run, by torch."""
    rows = [["torch", "Python", "devices", "tests passed", "failed", "skipped"], ["---"] * 6]
    runs = [(record, step) for record in records for step in record.steps if step.name == "simulator"]
    for record, step in sorted(runs, key=lambda run: _parts(run[0].versions["torch"])):
        if step.outcome != "skipped":
            versions = [record.versions["torch"], record.versions["python"]]
            devices = dict.fromkeys((record.device.removeprefix("simulated "), "xpu"))
            counts = [str(count) for count in (step.passed, step.failed, step.skipped)]
            rows.append([*versions, ", ".join(f"`{device}`" for device in devices), *counts])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows) + "\n"


def steps_text() -> str:
    """Return what the steps are, as a list."""
    return "\n".join(f"- **{step.name}**: {step.about}" for step in STEPS) + "\n"


def _link(stack: Stack, vendor: str | None) -> str:
    folder = "dockerfiles" if vendor is None else "../dockerfiles"
    return stack.name if refusal(stack) else f"[{stack.name}]({folder}/{stack.name}.Dockerfile)"


def _versions(record: StackRecord, stack: Stack | None) -> list[str]:
    found = record.versions or {pin.package: pin.version for pin in (stack.pins if stack else ())}
    return [found.get(name, "-").partition("+")[0] for name in _SHOWN]


def _results(record: StackRecord) -> list[str]:
    if record.refused:
        return [record.device, "nothing", "refused"]
    passed = [step.name for step in record.steps if step.outcome == "passed"]
    others = [f"{step.name} ({step.outcome})" for step in record.steps if step.outcome != "passed"]
    everything = len(passed) == len(record.steps)
    return [record.device, f"all {len(passed)} steps" if everything else ", ".join(passed), ", ".join(others) or "-"]


def _notes(record: StackRecord) -> list[str]:
    """Reasons, one for all steps that share it."""
    if record.refused:
        return [f"refused: {record.refused}"]
    by_reason: dict[str, list[StepResult]] = {}
    for step in record.steps:
        if step.reason:
            by_reason.setdefault(step.reason, []).append(step)
    return [f"{', '.join(step.name for step in steps)}: {_plain(reason)}" for reason, steps in by_reason.items()]


def _plain(reason: str) -> str:
    """A reason in which nothing is read as markup."""
    return f"`{reason.replace('`', chr(39))}`" if any(mark in reason for mark in "*_[]<>|") else reason


def _used(record: StackRecord, package: str) -> bool:
    step = _STEP_OF.get(package)
    return step is None or any(one.name == step and one.outcome == "passed" for one in record.steps)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("+")[0].split(".") if part.isdecimal())
