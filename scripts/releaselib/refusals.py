# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What keeps a package from being released. All checks are asked, so that one run says all."""

import re
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.version import Version

from releaselib import changelog
from releaselib.packages import CORE, TOOLS, Package, all_packages, final_version
from releaselib.processes import ReleaseError, run


def refusals(package: Package, tag: str | None) -> list[str]:
    """Return every reason against releasing the package as it is.

    Args:
        package: What is to be released.
        tag: The tag that was pushed, or None when this run is to make it.
    """
    return [reason for reason in _all(package, tag) if reason]


def _all(package: Package, tag: str | None) -> Iterator[str | None]:
    yield _version_form(package)
    yield _tree(package)
    yield _tag(package, tag)
    yield _changelog(package)
    yield _core_bound(package)
    yield _tools_bound(package)
    yield from _requirements(package)


def _version_form(package: Package) -> str | None:
    try:
        written = final_version(package.version)
    except ReleaseError as error:
        return f"version: {error}"
    return None if written == package.version else f"version: write {written}, not {package.version}"


def _tree(package: Package) -> str | None:
    changed = run(["git", "status", "--porcelain"], cwd=package.root, what="git status").splitlines()
    if not changed:
        return None
    return f"tree: {len(changed)} files are not committed ({changed[0].strip()} ...): commit or remove them"


def _tag(package: Package, tag: str | None) -> str | None:
    if tag is not None and tag != package.tag:
        return f"tag: {tag} was given and pyproject.toml says {package.version}: it must be {package.tag}"
    if not run(["git", "tag", "--list", package.tag], cwd=package.root, what="git tag").strip():
        return f"tag: {tag} is not in this repository: fetch tags" if tag else None
    tagged = run(["git", "rev-list", "-n", "1", package.tag], cwd=package.root, what="git rev-list").strip()
    head = run(["git", "rev-parse", "HEAD"], cwd=package.root, what="git rev-parse").strip()
    if tagged == head:
        return None
    return f"tag: {package.tag} is another commit ({tagged[:12]}): a version is released once; raise the version"


def _changelog(package: Package) -> str | None:
    left = changelog.fragments(package)
    if left:
        return f"changelog: {len(left)} fragments are not taken in ({left[0].name}): release.py prepare"
    if not changelog.section(package, package.version):
        return f"changelog: no dated section {package.version} with text: release.py prepare {package.name} X.Y.Z"
    return None


def _core_bound(package: Package) -> str | None:
    wanted = package.requirement_on(CORE)
    if wanted is None:
        return f"core bound: {package.name} does not require {CORE}" if package.is_vendor else None
    unreleased = _unreleased_bound(package, wanted, "core")
    if unreleased is None and not any(one.operator in ("<", "==", "~=") for one in wanted.specifier):
        return f"core bound: {wanted.specifier} has no upper end: the next core may break this wheel"
    return unreleased


def _tools_bound(package: Package) -> str | None:
    """The tools have a lower bound only: no wheel's code imports them, so a later one breaks none."""
    wanted = package.requirement_on(TOOLS)
    if wanted is None:
        return None
    if any(one.operator != ">=" for one in wanted.specifier):
        return f"tools bound: {wanted.specifier} keeps later tools away: write >= alone"
    return _unreleased_bound(package, wanted, "tools")


def _unreleased_bound(package: Package, wanted: Requirement, what: str) -> str | None:
    """Why a requirement on another of our packages cannot be met by what was released, or None."""
    released = all_packages(package.root)[wanted.name].released()
    if not any(version in wanted.specifier for version in released):
        found = f"released: {', '.join(map(str, released)) or 'none'}"
        return f"{what} bound: no released {what} is in {wanted.specifier} ({found}): release {wanted.name} first"
    floors = [Version(one.version) for one in wanted.specifier if one.operator in (">=", "==", "~=")]
    if not any(floor in released for floor in floors):
        return f"{what} bound: the lowest {what} in {wanted.specifier} was never released: begin at a released version"
    return None


def _requirements(package: Package) -> Iterator[str | None]:
    """An index refuses requirements on a URL and versions with a local part."""
    project = package.project
    extras = [text for texts in project.get("optional-dependencies", {}).values() for text in texts]
    for text in [*project.get("dependencies", ()), *extras]:
        requirement = Requirement(text)
        if requirement.url is not None:
            yield f"requirements: an index refuses {text!r}: name a version instead of a URL"
        if re.search(r"[=><~][^,;]*\+", str(requirement.specifier)):
            yield f"requirements: {text!r} names a local version, which no index has"
