# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's console log: one line ``step:<n> - <metric>:<value> - ...`` a step, among everything else that was printed."""

import re
from dataclasses import replace
from pathlib import Path

from verl_hw_tools.acceptance.metrics import KNOWN
from verl_hw_tools.acceptance.run import RunBuilder
from verl_hw_tools.errors import DamagedLogError

# Ray puts "(TaskRunner pid=1) " before it, and a progress bar may stand on the same line.
STEP_LINE = re.compile(r"(?:^|[\s)])step:(\d+) - (?=\S+:)", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_REPEATED = re.compile(r" \[repeated \d+x across cluster\].*$")
_RAY_PREFIX = re.compile(r"^\([^()]* pid=\d+[^()]*\)\s*")
# numpy scalars are printed with their type.
_NUMBER = re.compile(r"(?:np\.\w+\()?([^()\s]+)\)?")
_PROGRESS = re.compile(r"Training Progress:.*?(\d+)/(\d+) \[")
_PLANNED_STEPS = re.compile(r"Total training steps: (\d+)")
_PLANNED_EPOCHS = re.compile(r"'total_epochs': (\d+)")
_EXIT_CODE = re.compile(r"^baseline: training ended with exit code (\d+)$")
_ERROR = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)\b")
_ERRORS = ("Error executing job with overrides", "Traceback (most recent call last)")


def read(path: Path, builder: RunBuilder) -> None:
    """Add all steps of a console log, and what it says about the end of the run."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    before: set[str] = set()
    for number, line in enumerate(re.split(r"\r\n|\r|\n", _COLOUR.sub("", text)), 1):
        found = STEP_LINE.search(line)
        if not found:
            _note_ending(builder, line)
            continue
        _note_ending(builder, line[: found.start()])
        values = _values(_REPEATED.sub("", line[found.end() :]), f"{path}, line {number}")
        lost = sorted((before - values.keys()) & set(KNOWN))
        if lost and not text.endswith("\n") and text.endswith(line):
            raise DamagedLogError(
                f"{path} is cut off in its last line: step {found[1]} lacks {', '.join(lost)}. Copy the whole log"
            )
        before = set(values)
        builder.add(int(found[1]), values)


def _values(text: str, where: str) -> dict[str, float]:
    values = {}
    for pair in text.split(" - "):
        metric, colon, printed = pair.strip().rpartition(":")
        number = _number(printed) if colon else None
        if number is not None:
            values[metric] = number
        elif metric in KNOWN or pair.strip() in KNOWN:
            raise DamagedLogError(
                f"{where}: wanted a number after {metric or pair.strip()}, found {printed[:40]!r}: the line is damaged "
                "(several processes writing over each other, or a cut-off copy). Give a complete log"
            )
    return values


def _number(printed: str) -> float | None:
    found = _NUMBER.fullmatch(printed.strip())
    try:
        return float(found[1]) if found else None
    except ValueError:
        return {"True": 1.0, "False": 0.0}.get(printed)


def _note_ending(builder: RunBuilder, line: str) -> None:
    ending = builder.ending
    if found := _PROGRESS.search(line):
        done, planned = int(found[1]), int(found[2])
        builder.ending = replace(ending, planned_steps=planned, finished=ending.finished or done == planned)
    elif found := _PLANNED_STEPS.search(line):
        builder.ending = replace(ending, planned_steps=int(found[1]))
    elif found := _PLANNED_EPOCHS.search(line):
        builder.ending = replace(ending, planned_epochs=int(found[1]))
    elif "Final validation metrics:" in line:
        builder.ending = replace(ending, finished=True)
    elif found := _EXIT_CODE.match(line):
        builder.ending = replace(ending, exit_code=int(found[1]))
    elif any(error in line for error in _ERRORS):
        builder.ending = replace(ending, error=ending.error or "a traceback")
    elif ending.error and _ERROR.match(_RAY_PREFIX.sub("", line)):
        # The last one is what ended the run: Ray prints the cause below the error that it wraps it in.
        builder.ending = replace(ending, error=_RAY_PREFIX.sub("", line).strip())
