# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What went wrong while vendor wheels were loaded: said once at WARNING, kept for the doctor.

verl logs a failing plugin at DEBUG only, so a broken wheel would look like a machine without an accelerator.
"""

import logging
import traceback
from dataclasses import dataclass

logger = logging.getLogger("verl_hw_core")


@dataclass(frozen=True)
class LoadProblem:
    """One failure or refusal while loading a wheel.

    Attributes:
        wheel: Distribution that was loaded, as ``"verl-hw-acme"``.
        stage: What was being done, as ``"importing verl_hw_acme.engines"``.
        message: The one line that was logged.
        traceback: Full traceback, empty when nothing was raised.
    """

    wheel: str
    stage: str
    message: str
    traceback: str = ""


_problems: list[LoadProblem] = []


def problems() -> tuple[LoadProblem, ...]:
    """Return every problem of this process so far, oldest first."""
    return tuple(_problems)


def report(wheel: str, stage: str, what: str, remedy: str, error: BaseException | None = None) -> None:
    """Log one WARNING and keep the problem for the doctor; the same problem is said once.

    Args:
        wheel: Distribution concerned.
        stage: What was being done.
        what: What happened, one line.
        remedy: What to do next, one line; empty when ``what`` says it.
        error: The exception behind it, whose traceback is kept.
    """
    message = f"{wheel}: {stage}: {what}" + (f". {remedy}" if remedy else "")
    if any(known.message == message for known in _problems):
        return
    trace = "".join(traceback.format_exception(error)) if error is not None else ""
    _problems.append(LoadProblem(wheel, stage, message, trace))
    logger.warning(message)


def describe(error: BaseException) -> str:
    """Return the exception as one line: its type and the first line of its text."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
