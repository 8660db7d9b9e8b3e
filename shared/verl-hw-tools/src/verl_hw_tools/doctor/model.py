# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a check finds, and what the doctor reports, as data."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from verl_hw_tools.conformance.results import Status
from verl_hw_tools.errors import CheckDefinitionError

SCHEMA_VERSION = 1
"""Version of the JSON form: raised when a name in it changes its meaning or goes."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check found.

    Attributes:
        status: The verdict.
        observed: What was found, in one or a few lines; the reason of a skip.
        expected: What should have been found; empty for a pass.
        mend: What to type or change, one line to copy where there is one; empty for a pass.
        details: More for whoever has to look deeper, as a traceback.
        ours: Whether the check itself broke, which says nothing about the machine.

    Raises:
        CheckDefinitionError: A part is of another type; here, so that the traceback ends in the check that is wrong.
    """

    status: Status
    observed: str
    expected: str = ""
    mend: str = ""
    details: str = ""
    ours: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.status, Status):
            raise CheckDefinitionError(f"a finding's status is a Status, got {self.status!r}")
        for name in ("observed", "expected", "mend", "details"):
            if not isinstance(getattr(self, name), str):
                raise CheckDefinitionError(f"a finding's {name} is text, got {getattr(self, name)!r}")


def ok(observed: str, *, details: str = "") -> Finding:
    """All is well."""
    return Finding(status=Status.OK, observed=observed, details=details)


def skip(reason: str) -> Finding:
    """The check means nothing here."""
    return Finding(status=Status.SKIP, observed=reason)


def warn(observed: str, *, expected: str, mend: str, details: str = "") -> Finding:
    """It may work, at a cost or in another way than wanted."""
    return Finding(status=Status.WARN, observed=observed, expected=expected, mend=mend, details=details)


def fail(observed: str, *, expected: str, mend: str, details: str = "") -> Finding:
    """It does not work until this is mended."""
    return Finding(status=Status.FAIL, observed=observed, expected=expected, mend=mend, details=details)


def crash(observed: str, *, expected: str, mend: str, details: str = "") -> Finding:
    """A process that looked at it died or gave no answer in time."""
    return Finding(status=Status.CRASH, observed=observed, expected=expected, mend=mend, details=details)


@dataclass(frozen=True, kw_only=True)
class Result:
    """A check with its finding.

    Attributes:
        id: As ``"torch.build"``; the part before the first dot is the group.
        title: What the check shows when it passes.
        why: Why it matters.
        doc: Where to read on.
        finding: What was found.
        seconds: How long the check took, without the processes that several checks share.
    """

    id: str
    title: str
    why: str
    doc: str
    finding: Finding
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """The finding's verdict."""
        return self.finding.status

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found = asdict(self.finding)
        found.pop("ours")
        named = {"id": self.id, "title": self.title, "why": self.why, "doc": self.doc}
        return {**named, **found, "status": self.status.value, "seconds": round(self.seconds, 3)}


@dataclass(frozen=True, kw_only=True)
class Report:
    """The doctor's report.

    Attributes:
        vendor: Key of the vendor that was judged, or None.
        summary: One line: what verl would use, and why.
        results: One result a check, in the order of the list.
        seconds: Duration.
    """

    vendor: str | None
    summary: str
    results: tuple[Result, ...]
    seconds: float

    def count(self, status: Status) -> int:
        """Return how many checks ended with ``status``."""
        return sum(result.status is status for result in self.results)

    @property
    def broken(self) -> tuple[Result, ...]:
        """Checks that broke themselves."""
        return tuple(result for result in self.results if result.finding.ours)

    def passed(self, *, strict: bool) -> bool:
        """Whether no check failed or crashed, and with ``strict`` none warned either."""
        return not any(result.status.is_bad or (strict and result.status is Status.WARN) for result in self.results)

    def as_data(self, *, strict: bool = False) -> dict[str, Any]:
        """Return the report as plain data for JSON; docs/doctor.md describes the schema."""
        return {
            "schema_version": SCHEMA_VERSION,
            "passed": self.passed(strict=strict),
            "strict": strict,
            "vendor": self.vendor,
            "verl_would_use": self.summary,
            "seconds": round(self.seconds, 3),
            "summary": {status.value: self.count(status) for status in Status},
            "results": [result.as_data() for result in self.results],
        }


def worst_first(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results that are neither passed nor skipped, the worst first."""
    order = (Status.CRASH, Status.FAIL, Status.WARN)
    return tuple(result for status in order for result in results if result.status is status)
