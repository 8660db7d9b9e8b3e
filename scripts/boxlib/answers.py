# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How a part's program says what it found: a JSON line for each step as soon as it has ended."""

import json
import math
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxlib.record import FAILED, NOT_RUN, PASSED
from boxlib.running import Job

_LONGEST_REASON = 2000


class WrongError(Exception):
    """The step ran and its result is not as wanted; the message says what was found and what was wanted."""


class NotHereError(Exception):
    """The step means nothing here; the message says why."""


@dataclass
class Answer:
    """A step's figures, filled while it runs."""

    figures: dict[str, Any] = field(default_factory=dict)


def read_job() -> Job:
    """Return the job whose file is this program's only argument."""
    return Job(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))


@contextmanager
def step(job: Job, name: str) -> Iterator[Answer]:
    """Run one step; whatever it raises is its outcome, and the program goes on with the next."""
    answer, began, outcome, reason = Answer(), time.monotonic(), PASSED, ""
    try:
        yield answer
    except NotHereError as error:
        outcome, reason = NOT_RUN, str(error)
    except WrongError as error:
        outcome, reason = FAILED, str(error)
    except Exception as error:  # noqa: BLE001 - which one it is, is the answer
        traceback.print_exc()
        outcome, reason = FAILED, f"{type(error).__name__}: {error}"
    line = {
        "name": name,
        "outcome": outcome,
        "reason": reason[:_LONGEST_REASON],
        "figures": _finite(answer.figures),
        "seconds": round(time.monotonic() - began, 1),
    }
    with job.answers.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line, allow_nan=False) + "\n")


def require_devices(job: Job, count: int) -> None:
    """Check that there are as many devices.

    Raises:
        NotHereError: There are fewer.
    """
    if job.devices < count:
        have = "one device" if job.devices == 1 else f"{job.devices} devices"
        raise NotHereError(have)


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN; as words they are seen."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
