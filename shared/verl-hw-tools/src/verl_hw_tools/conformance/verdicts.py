# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How a check says that it did not pass: it raises one of these. A check that returns has passed."""

# ruff: noqa: N818 - verdicts of a check, not errors of a program.


class CheckVerdict(Exception):
    """Base class of the verdicts."""

    def __init__(self, observed: str, expected: str = "") -> None:
        super().__init__(observed)
        self.observed = observed
        self.expected = expected


class CheckFailed(CheckVerdict):
    """The device does not do what verl needs."""


class CheckWarned(CheckVerdict):
    """The device does not do it, and verl or verl-hw has another way, which costs something."""


class CheckSkipped(CheckVerdict):
    """The check means nothing here; ``observed`` is the reason."""


def require(condition: bool, observed: str, expected: str) -> None:
    """Fail the running check unless ``condition`` holds.

    Args:
        condition: What must be true.
        observed: What was found, with values.
        expected: What should have been found.

    Raises:
        CheckFailed: It does not hold.
    """
    if not condition:
        raise CheckFailed(observed, expected)
