# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The packages of a workspace and their tags."""

import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from releaselib.processes import ReleaseError, run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CORE, TOOLS, SIM = "verl-hw-core", "verl-hw-tools", "verl-hw-sim"


@dataclass(frozen=True)
class Package:
    """One member of the workspace.

    Attributes:
        root: The workspace.
        folder: The member's folder.
    """

    root: Path
    folder: Path

    @property
    def name(self) -> str:
        """Name of the distribution, and of its folder."""
        return self.folder.name

    @property
    def module(self) -> str:
        """Its import package."""
        return self.name.replace("-", "_")

    @property
    def is_vendor(self) -> bool:
        """Whether it is a vendor's wheel."""
        return self.folder.parent.name == "packages"

    @cached_property
    def project(self) -> dict[str, Any]:
        """The ``project`` table of its pyproject.toml."""
        text = (self.folder / "pyproject.toml").read_text(encoding="utf-8")
        project: dict[str, Any] = tomllib.loads(text)["project"]
        return project

    @property
    def version(self) -> str:
        """The version that its pyproject.toml states."""
        return str(self.project["version"])

    @property
    def tag(self) -> str:
        """The tag of that version."""
        return f"{self.name}-v{self.version}"

    def requirement_on(self, name: str) -> Requirement | None:
        """What it requires of another package, or None."""
        found = (Requirement(text) for text in self.project.get("dependencies", ()))
        return next((one for one in found if one.name == name), None)

    def released(self) -> list[Version]:
        """Versions that have a tag in this repository, the newest first."""
        listed = run(["git", "tag", "--list", f"{self.name}-v*"], cwd=self.root, what="listing tags")
        found = []
        for line in listed.split():
            try:
                found.append(Version(line.removeprefix(f"{self.name}-v")))
            except InvalidVersion:
                continue  # a tag of somebody's own
        return sorted(found, reverse=True)

    def last_tag(self) -> str | None:
        """The tag of the newest release, or None."""
        found = self.released()
        return f"{self.name}-v{found[0]}" if found else None


def all_packages(root: Path) -> dict[str, Package]:
    """Return every member of the workspace by name, the shared ones first."""
    folders = [*sorted(root.glob("shared/verl-hw-*")), *sorted(root.glob("packages/verl-hw-*"))]
    return {one.name: Package(root, one) for one in folders if (one / "pyproject.toml").is_file()}


def find_package(root: Path, name: str) -> Package:
    """Return a member by its name, as ``"verl-hw-cambricon"`` or ``"cambricon"``.

    Raises:
        ReleaseError: There is none of that name.
    """
    packages = all_packages(root)
    found = packages.get(name) or packages.get(f"verl-hw-{name}")
    if found is None:
        raise ReleaseError(f"no package {name!r} here; there are: {', '.join(packages)}")
    return found


def final_version(text: str) -> str:
    """Return a version as it is written in tags and on an index.

    Raises:
        ReleaseError: It is none, or none that an index takes.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", text):
        raise ReleaseError(f"a version is written X.Y.Z, X.Y.ZrcN, X.Y.ZbN or X.Y.ZaN, found {text!r}")
    return str(Version(text))
