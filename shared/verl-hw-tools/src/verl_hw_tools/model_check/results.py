# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a check of a model found, and its form between the processes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Status(str, Enum):
    """How one comparison ended."""

    OK = "ok"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One comparison.

    Attributes:
        name: What was compared.
        status: How it ended.
        observed: What was seen, for people.
        worst: Largest difference, relative to the largest value of the tensor; None where nothing was measured.
        tensors: Names in the checkpoint of what differs, the worst first.
    """

    name: str
    status: Status
    observed: str
    worst: float | None = None
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """All comparisons of one model.

    Attributes:
        model_type: The Hugging Face config's.
        hf_class: Class of the Hugging Face model.
        bridge: Class of the bridge.
        vendor: Platform key.
        device: torch device type.
        simulated: Whether the device is a simulated one.
        sizes: What was made smaller: name, and the values before and after.
        tolerance: Largest difference that is taken for rounding.
        findings: The comparisons, in order.
    """

    model_type: str
    hf_class: str
    bridge: str
    vendor: str
    device: str
    simulated: bool
    sizes: Mapping[str, Sequence[Any]]
    tolerance: float
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether no comparison failed."""
        return all(finding.status is not Status.FAIL for finding in self.findings)

    def as_data(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        return {**asdict(self), "passed": self.passed}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Report":
        """Return a report from what :meth:`as_data` gave."""
        findings = tuple(
            Finding(**{**one, "status": Status(one["status"]), "tensors": tuple(one["tensors"])})
            for one in data["findings"]
        )
        return cls(**{name: value for name, value in data.items() if name != "passed"} | {"findings": findings})
