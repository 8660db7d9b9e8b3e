# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Versions: what is installed, what verl-hw was run with, and what the installed packages ask of each other."""

import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.resources import files

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_FILE = files("verl_hw_core") / "tested_versions.json"


@dataclass(frozen=True, kw_only=True)
class VersionRow:
    """What one package was run with.

    Attributes:
        name: Distribution, or "python".
        tested: Release series, as "2.13".
        floor: Lowest version that is allowed, or None.
        ceiling: First version that is not, or None.
        patches: Versions in which the names were read that verl-hw replaces or relies on; None for floor and ceiling.
    """

    name: str
    tested: tuple[str, ...]
    floor: str | None
    ceiling: str | None
    patches: str | None = None

    def covers(self, version: str) -> bool:
        """Whether this version's release series was tried; a vendor's local part does not matter."""
        try:
            found = Version(version)
        except InvalidVersion:
            return False
        return f"{found.major}.{found.minor}" in self.tested

    def allows(self, version: str) -> bool:
        """Whether this version is within the bounds."""
        try:
            found = Version(Version(version).base_version)
        except InvalidVersion:
            return False
        return not (self.floor and found < Version(self.floor)) and not (
            self.ceiling and found >= Version(self.ceiling)
        )


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """A requirement of an installed package that the installed packages do not meet."""

    package: str
    requirement: Requirement
    found: str | None

    @property
    def wish(self) -> str:
        """What the package requires."""
        return f"{self.package} wants {self.requirement.name}{self.requirement.specifier}"

    def __str__(self) -> str:
        return f"{self.wish}, found {self.found or 'not installed'}"


def version_table() -> tuple[VersionRow, ...]:
    """Return the table of tested versions."""
    rows = json.loads(_FILE.read_text(encoding="utf-8"))["packages"]
    return tuple(VersionRow(**{**row, "tested": tuple(row["tested"])}) for row in rows)


def installed_version(name: str) -> str | None:
    """Version of an installed distribution, or of Python; None when it is not installed."""
    if name == "python":
        return platform.python_version()
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def conflicts(packages: Sequence[str], *, besides: Sequence[str] = ()) -> list[Conflict]:
    """Return what the installed ones of ``packages`` require and do not get; extras are left out.

    Args:
        packages: Distributions whose requirements are looked at.
        besides: Requirements that are not.
    """
    found = [conflict for package in packages for conflict in _conflicts_of(package)]
    return [conflict for conflict in found if conflict.requirement.name not in besides]


def opposed(unmet: Sequence[Conflict], packages: Sequence[str]) -> list[Conflict]:
    """Return what ``packages`` require that would not be met any more once ``unmet`` is."""
    lowest = {
        canonicalize_name(one.requirement.name): bound.version
        for one in unmet
        for bound in one.requirement.specifier
        if bound.operator in (">=", "==", "~=") and not bound.version.endswith(".*")
    }
    return [
        Conflict(package=f"{package} {installed_version(package)}", requirement=one, found=lowest[name])
        for package in packages
        if installed_version(package) is not None
        for one in requirements_of(metadata.distribution(package))
        if (name := canonicalize_name(one.name)) in lowest and _applies(one) and not _fits(one, lowest[name])
    ]


def required_names(package: str) -> set[str]:
    """Names of what an installed package requires, extras left out; nothing of one that is not installed."""
    if installed_version(package) is None:
        return set()
    return {canonicalize_name(one.name) for one in requirements_of(metadata.distribution(package)) if _applies(one)}


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def requirements_of(distribution: metadata.Distribution) -> Iterator[Requirement]:
    """Yield what a distribution requires, as far as it can be read."""
    for line in distribution.requires or ():
        try:
            yield Requirement(line)
        except InvalidRequirement:
            continue  # metadata of another age; no installer would read it either


def _conflicts_of(package: str) -> Iterator[Conflict]:
    try:
        distribution = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return
    for requirement in requirements_of(distribution):
        if not _applies(requirement):
            continue
        found = installed_version(requirement.name)
        if found is None or not _fits(requirement, found):
            yield Conflict(package=f"{package} {distribution.version}", requirement=requirement, found=found)


def _fits(requirement: Requirement, version: str) -> bool:
    try:
        # Pre-releases count: who installed one wanted it.
        return requirement.specifier.contains(version, prereleases=True)
    except InvalidVersion:
        return False
