# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the command tells the processes of a launch: one JSON file."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

JOB_FILE = "job.json"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A launch.

    Attributes:
        vendor: Platform key.
        group: Name of the group of checks.
        checks: Their ids, in order.
        processes: Number of processes.
        deadline: Seconds that a check may take.
    """

    vendor: str
    group: str
    checks: tuple[str, ...]
    processes: int
    deadline: float

    def write(self, folder: Path) -> None:
        """Leave the job in the launch's folder."""
        (folder / JOB_FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Job":
        """Read the job of the launch whose folder this is."""
        data = json.loads((folder / JOB_FILE).read_text(encoding="utf-8"))
        return cls(**{**data, "checks": tuple(data["checks"])})
