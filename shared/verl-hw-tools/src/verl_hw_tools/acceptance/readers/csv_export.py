# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""CSV files exported from wandb or SwanLab, or written from a table of either's API.

A chart's export has the step and, of each run in the chart, a column named after run and metric: wandb joins them by
" - " and adds "__MIN" and "__MAX", SwanLab by "-" and adds "_timestamp". A table of the API has the metrics' own names.
"""

import csv
import math
from pathlib import Path

from verl_hw_tools.acceptance.metrics import KNOWN
from verl_hw_tools.acceptance.run import RunBuilder
from verl_hw_tools.errors import DamagedLogError, DuplicateStepsError, MissingMetricError

_STEPS = ("step", "_step", "training/global_step", "global_step", "trainer/global_step")
_NOT_VALUES = ("__MIN", "__MAX", "_timestamp")


def is_header(line: str) -> bool:
    """Whether the line is the header of such a file."""
    try:
        names = next(csv.reader([line]), [])
    except csv.Error:
        return False
    return len(names) > 1 and (_step_column(names) is not None or any(_metric(name) for name in names))


def read(path: Path, builder: RunBuilder) -> None:
    """Add all rows of one CSV file."""
    names, *rows = _table(path)
    step_at = _step_column(names)
    if step_at is None:
        raise MissingMetricError(
            f"{path}: wanted a column with the step ({', '.join(_STEPS)}), found {', '.join(names[:6])}. Export with "
            "the step on the horizontal axis"
        )
    metrics = _metric_columns(path, names)
    logged = [
        _row(row, step_at, metrics, (f"{path}, line {number}", len(names)))
        for number, row in enumerate(rows, 2)
        if any(row)
    ]
    if len({step for step, _ in logged}) == len(logged):
        logged.sort(key=lambda one: one[0])  # a table shown with the newest step first is exported so
    for step, values in logged:
        builder.add(step, values)


def _table(path: Path) -> list[list[str]]:
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    try:
        return list(csv.reader(text.splitlines())) or [[]]
    except csv.Error as error:
        raise DamagedLogError(
            f"{path} is no whole CSV file: {error} (a quotation mark that is not closed?). Export it again"
        ) from error


def _row(row: list[str], step_at: int, metrics: dict[int, str], where: tuple[str, int]) -> tuple[int, dict[str, float]]:
    """The step of one row and what was logged at it."""
    line, width = where
    if len(row) != width:
        raise DamagedLogError(f"{line}: wanted {width} fields, found {len(row)}: cut off or damaged. Export it again")
    step = _number(row[step_at], f"{line}, step")
    if not step.is_integer():
        raise DamagedLogError(f"{line}: a step must be a whole number, found {row[step_at]!r}. Export by step")
    # An empty field means that the metric was not logged at this step.
    values = {metric: _number(row[at], f"{line}, {metric}") for at, metric in metrics.items() if row[at].strip()}
    return int(step), values


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        if text.strip().lower() in ("null", "none"):
            return math.nan
        raise DamagedLogError(f"{where}: wanted a number, found {text[:40]!r}. Export it again") from error


def _step_column(names: list[str]) -> int | None:
    lower = [name.strip().lower() for name in names]
    return next((lower.index(step) for step in _STEPS if step in lower), None)


def _metric_columns(path: Path, names: list[str]) -> dict[int, str]:
    columns: dict[int, str] = {}
    for at, name in enumerate(names):
        metric = _metric(name)
        if metric is None:
            continue
        if metric in columns.values():
            raise DuplicateStepsError(
                f"{path}: several columns hold {metric}, so it has several runs ({name!r} is one). Export one run"
            )
        columns[at] = metric
    return columns


def _metric(column: str) -> str | None:
    name = column.strip()
    if name.endswith(_NOT_VALUES):
        return None
    return next(
        (metric for metric in KNOWN if name == metric or name.endswith(tuple(f"{s}{metric}" for s in "- _/"))), None
    )
