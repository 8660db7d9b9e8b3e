# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's file logger: one JSON object ``{"step": n, "data": {...}}`` a line."""

import json
import math
from pathlib import Path
from typing import Any

from verl_hw_tools.acceptance.run import RunBuilder
from verl_hw_tools.errors import DamagedLogError


def read(path: Path, builder: RunBuilder) -> None:
    """Add all lines of a file that verl's file logger wrote."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    last = len(lines)
    for number, line in enumerate(lines, 1):
        if line.strip():
            step, data = _record(line, f"{path}, line {number}" + (" (the last)" if number == last else ""))
            builder.add(step, {metric: _value(value) for metric, value in data.items() if _is_value(value)})


def _record(line: str, where: str) -> tuple[int, dict[str, Any]]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DamagedLogError(
            f"{where}: wanted one JSON object a line as verl's file logger writes them, and this one is cut off or "
            f"damaged ({error}). Give a complete file"
        ) from error
    step = record.get("step") if isinstance(record, dict) else None
    data = record.get("data") if isinstance(record, dict) else None
    if not isinstance(step, int) or isinstance(step, bool) or not isinstance(data, dict):
        raise DamagedLogError(
            f'{where}: wanted {{"step": <number>, "data": {{...}}}} as verl\'s file logger writes it, found '
            f"{line[:60]!r}. Is this another program's file?"
        )
    return step, data


def _is_value(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _value(value: float | None) -> float:
    # The logger writes NaN and infinity as null.
    return math.nan if value is None else float(value)
