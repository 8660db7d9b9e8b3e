# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which devices and which checks there are, as the survey's process found them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ListedCheck:
    """A check without its function."""

    id: str
    title: str
    blocks: str
    processes: int

    @property
    def group(self) -> str:
        """The group it belongs to."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What a survey found.

    Attributes:
        device_names: Name of each device that a process sees.
        versions: Versions of what the checks run on.
        checks: The checks of the groups asked for, for this vendor.
        broken: Groups whose module could not be loaded, with the error.
    """

    device_names: tuple[str, ...]
    versions: dict[str, str]
    checks: tuple[ListedCheck, ...]
    broken: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> "Survey":
        """Read what :meth:`write` left."""
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            device_names=tuple(data["device_names"]),
            versions=data["versions"],
            checks=tuple(ListedCheck(**check) for check in data["checks"]),
            broken=data["broken"],
        )

    def write(self, path: Path) -> None:
        """Write this to ``path``: whole or not at all, since the file's presence says that its process got here."""
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self)), encoding="utf-8")
        temporary.rename(path)
