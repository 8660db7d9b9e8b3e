# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the command asks of the child process, and what it answers."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

JOB, REPORT, REFUSAL = "job.json", "report.json", "refusal.txt"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One check of a model.

    Attributes:
        model: Folder with the model's config.json.
        vendor: Platform key.
        simulated: Whether the device is a simulated one.
        modules: Modules to import first, which register the model.
        full_size: Do not make the model smaller.
        tolerance: Largest relative difference that is taken for rounding.
        trust_remote_code: transformers may run code of the model's folder.
    """

    model: str
    vendor: str
    simulated: bool
    modules: tuple[str, ...] = ()
    full_size: bool = False
    tolerance: float = 1e-4
    trust_remote_code: bool = False

    def write(self, folder: Path) -> None:
        """Write it for the child."""
        (folder / JOB).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Job":
        """Read what the command wrote."""
        data = json.loads((folder / JOB).read_text(encoding="utf-8"))
        return cls(**{**data, "modules": tuple(data["modules"])})
