# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the suite found, as data."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

SCHEMA_VERSION = 1


class Status(str, Enum):
    """How a check ended.

    ``WARN``: verl or verl-hw goes another way, at a cost. ``CRASH``: its process died or gave no answer in time.
    """

    OK = "ok"
    SKIP = "skip"
    WARN = "warn"
    FAIL = "fail"
    CRASH = "crash"

    @property
    def is_bad(self) -> bool:
        """Whether a run with this result has failed."""
        return self in (Status.FAIL, Status.CRASH)


# Of the ranks' results the last in this order is the check's: a rank that skipped says less than one that passed.
_SEVERITY = (Status.SKIP, Status.OK, Status.WARN, Status.FAIL, Status.CRASH)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """How a check ended on one rank.

    Attributes:
        status: The verdict.
        observed: What was found; the reason of a skip.
        expected: What should have been found; empty for a pass.
        seconds: How long the check took.
    """

    status: Status
    observed: str = ""
    expected: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """How a check ended.

    Attributes:
        id: As ``"collectives.all_reduce.sum"``; the part before the first dot is the group.
        title: What the check shows when it passes.
        status: The worst of all ranks.
        blocks: What of verl does not work when the check fails.
        observed: What was found; the reason of a skip.
        expected: What should have been found.
        processes: How many processes the check ran in.
        ranks: The ranks with this status; empty for a check of one process.
        seconds: Time of the slowest rank.
    """

    id: str
    title: str
    status: Status
    blocks: str = ""
    observed: str = ""
    expected: str = ""
    processes: int = 1
    ranks: tuple[int, ...] = ()
    seconds: float = 0.0

    @property
    def group(self) -> str:
        """The group that the check belongs to."""
        return self.id.partition(".")[0]


def worst(findings: Iterable[tuple[int, Finding]]) -> tuple[Finding, tuple[int, ...]]:
    """Return the worst finding of several ranks, and the ranks that share its status. There must be one at least."""
    found = list(findings)
    status = max((finding.status for _, finding in found), key=_SEVERITY.index)
    chosen = [(rank, finding) for rank, finding in found if finding.status is status]
    slowest = max(finding.seconds for _, finding in found)
    first = chosen[0][1]
    merged = Finding(status=status, observed=first.observed, expected=first.expected, seconds=slowest)
    return merged, tuple(rank for rank, _ in chosen)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the suite ran on.

    Attributes:
        vendor: Platform key.
        display_name: Name for people.
        device: torch device type.
        simulated: The value of ``VERL_HW_SIM``, or None for real hardware.
        limits: The value of ``VERL_HW_SIM_LIMITS``.
        device_names: Name of each visible device.
        versions: Versions of python, torch, verl, the core and the vendor's wheel.
    """

    vendor: str
    display_name: str
    device: str
    simulated: str | None
    limits: str = ""
    device_names: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """One line for people; it always says when the device was simulated."""
        where = f"SIMULATED ({self.simulated})" if self.simulated else "real devices"
        limits = f", limits {self.limits}" if self.simulated and self.limits else ""
        names = ", ".join(sorted(set(self.device_names)))
        return f"{self.display_name}, {where}{limits}: {len(self.device_names)} x {names} (torch.{self.device})"


@dataclass(frozen=True, kw_only=True)
class Report:
    """The results of a run.

    Attributes:
        machine: What it ran on.
        results: One result a check, in the order of the groups.
        processes: Processes of the checks that need several.
        started: Start as ISO 8601, UTC.
        seconds: Duration.
    """

    machine: Machine
    results: tuple[CheckResult, ...]
    processes: int
    started: str
    seconds: float

    @property
    def bad(self) -> tuple[CheckResult, ...]:
        """The checks that failed or crashed."""
        return tuple(result for result in self.results if result.status.is_bad)

    @property
    def passed(self) -> bool:
        """Whether no check failed or crashed."""
        return not self.bad

    def count(self, status: Status) -> int:
        """Return how many checks ended with ``status``."""
        return sum(result.status is status for result in self.results)

    def by_id(self, check_id: str) -> CheckResult:
        """Return the result of one check.

        Raises:
            KeyError: It was not run.
        """
        for result in self.results:
            if result.id == check_id:
                return result
        raise KeyError(check_id)

    def as_data(self) -> dict[str, Any]:
        """Return the report as plain data for JSON; docs/check.md describes the schema."""
        return {
            "schema_version": SCHEMA_VERSION,
            "passed": self.passed,
            "machine": {**asdict(self.machine), "device_count": len(self.machine.device_names)},
            "processes": self.processes,
            "started": self.started,
            "seconds": round(self.seconds, 3),
            "summary": {status.value: self.count(status) for status in Status},
            "results": [
                {
                    **asdict(result),
                    "group": result.group,
                    "status": result.status.value,
                    "seconds": round(result.seconds, 4),
                }
                for result in self.results
            ],
        }
