# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""CHANGELOG.md of a package: a section a version, from fragments in its changelog.d (towncrier)."""

import re
from datetime import date
from pathlib import Path

from releaselib.packages import Package
from releaselib.processes import ReleaseError, run, tool

CONFIGURATION = Path("scripts/releaselib/towncrier.toml")
_MARK = "<!-- next -->"
_HEADING = r"^## {version} \({when}\)\n"


def path(package: Package) -> Path:
    """The package's changelog."""
    return package.folder / "CHANGELOG.md"


def fragments(package: Package) -> list[Path]:
    """Fragments that no release has taken in yet."""
    folder = package.folder / "changelog.d"
    return sorted(one for one in folder.glob("*.*.md") if one.is_file()) if folder.is_dir() else []


def section(package: Package, version: str) -> str | None:
    """Text of the dated section of a version, or None without one."""
    text = path(package).read_text(encoding="utf-8") if path(package).is_file() else ""
    heading = re.search(_HEADING.format(version=re.escape(version), when=r"\d{4}-\d\d-\d\d"), text, re.MULTILINE)
    return None if heading is None else text[heading.end() :].partition("\n## ")[0].strip()


def close(package: Package, version: str, today: date) -> None:
    """Write the section of a version: the open one that was written by hand, or one from the fragments.

    Raises:
        ReleaseError: There is nothing to say about this version, or both an open section and fragments, or a section
            of this version that is closed, or of another that is open.
    """
    text = path(package).read_text(encoding="utf-8")
    is_open = re.compile(_HEADING.format(version=re.escape(version), when="unreleased"), re.MULTILINE)
    found = is_open.search(text)
    if found and fragments(package):
        raise ReleaseError(
            f"{package.name}: {path(package).name} has an open section {version} and changelog.d has fragments; "
            "move the fragments' text into the section and remove them"
        )
    if section(package, version) is not None:
        raise ReleaseError(
            f"{package.name}: {path(package).name} has a dated section {version} already: write what is new into it, "
            "remove its fragments and commit, or name another version"
        )
    other = re.search(_HEADING.format(version=r"(\S+)", when="unreleased"), text, re.MULTILINE)
    if other and not found:
        raise ReleaseError(
            f"{package.name}: {path(package).name} has an open section {other[1]}: prepare that version, or write "
            f"{version} into its heading"
        )
    if found:
        heading = f"## {version} ({today.isoformat()})\n"
        path(package).write_text(text[: found.start()] + heading + text[found.end() :], encoding="utf-8")
        return
    if not fragments(package):
        raise ReleaseError(
            f"{package.name}: nothing is written about {version}: add changelog.d/<number or +word>.<type>.md, "
            "with the types of scripts/releaselib/towncrier.toml"
        )
    if _MARK not in text:  # towncrier would write above the title
        title, _, rest = text.partition("\n")
        path(package).write_text(f"{title}\n\n{_MARK}\n{rest}", encoding="utf-8")
    command: list[str | Path] = [
        tool("towncrier"),
        "build",
        "--yes",
        "--config",
        package.root / CONFIGURATION,
        "--dir",
        package.folder,
    ]
    run([*command, "--version", version, "--date", today.isoformat()], cwd=package.root, what="towncrier")
