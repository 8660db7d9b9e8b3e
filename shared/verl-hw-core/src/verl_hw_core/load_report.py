# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What went wrong while vendor wheels were loaded: said once at WARNING, kept for the doctor.

verl logs a failing plugin at DEBUG only, so a broken wheel would look like a machine without an accelerator.
"""

import logging
import os
import traceback
from dataclasses import dataclass

from verl_hw_core.errors import StrictModeError

STRICT_ENVVAR = "VERL_HW_STRICT"
"""``1``: every warning of ours is an error."""

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


def warnings_are_errors() -> None:
    """Have every warning of ours raise where ``VERL_HW_STRICT=1`` is set; a second call changes nothing.

    Raises:
        StrictModeError: The variable holds neither 1 nor 0.
    """
    value = os.environ.get(STRICT_ENVVAR, "0").strip() or "0"
    if value not in ("0", "1"):
        raise StrictModeError(f"{STRICT_ENVVAR}={value!r}: set it to 1 (every warning of verl-hw is an error) or to 0")
    if value == "1":
        logger.addFilter(_raise)


def require_none_if_strict() -> None:
    """Check that no wheel had a problem, whose error verl or another importer may have swallowed.

    Raises:
        StrictModeError: One had, and ``VERL_HW_STRICT=1`` is set.
    """
    if _raise in logger.filters and _problems:
        raise StrictModeError(_text("; ".join(problem.message for problem in _problems)))


def _raise(record: logging.LogRecord) -> bool:
    if record.levelno >= logging.WARNING:
        raise StrictModeError(_text(record.getMessage()))
    return True


def _text(message: str) -> str:
    return f"{STRICT_ENVVAR}=1 makes this warning an error: {message}"


def describe(error: BaseException) -> str:
    """Return the exception as one line: its type and the first line of its text."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
