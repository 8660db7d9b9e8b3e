# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""One criterion: what was measured, what it is held against, and what that means in plain words."""

from dataclasses import dataclass
from enum import Enum


class Status(str, Enum):
    """Outcome of one criterion."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """One criterion and its outcome.

    Attributes:
        id: Stable name, as ``"reward.trend"``.
        title: Name for people.
        stated: Whether it is one of the field's stated criteria; the others look for what the reward does not show.
        status: Outcome.
        value: The number that was found, or None.
        found: That number with its unit, for people.
        wanted: What it is held against, for people.
        meaning: What the outcome means.
        metric: The metric that was looked at, or None.
    """

    id: str
    title: str
    stated: bool
    status: Status
    value: float | None
    found: str
    wanted: str
    meaning: str
    metric: str | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a criterion asks, whatever the outcome.

    Attributes:
        id: As in :class:`Criterion`.
        title: As in :class:`Criterion`.
        good: Meaning of a pass.
        bad: Meaning of a failure: usual causes first.
        metric: As in :class:`Criterion`.
        stated: As in :class:`Criterion`.
    """

    id: str
    title: str
    good: str
    bad: str
    metric: str | None = None
    stated: bool = False

    def answered(self, passed: bool, value: float | None, found: str, wanted: str) -> Criterion:
        """Return the criterion with its outcome."""
        return Criterion(
            id=self.id,
            title=self.title,
            stated=self.stated,
            status=Status.PASSED if passed else Status.FAILED,
            value=value,
            found=found,
            wanted=wanted,
            meaning=self.good if passed else self.bad,
            metric=self.metric,
        )

    def open(self, why: str, wanted: str = "") -> Criterion:
        """Return the criterion as not judged."""
        return Criterion(
            id=self.id,
            title=self.title,
            stated=self.stated,
            status=Status.NOT_JUDGED,
            value=None,
            found="",
            wanted=wanted,
            meaning=why,
            metric=self.metric,
        )
