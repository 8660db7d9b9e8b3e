# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Wheels and sdists from a commit, with the locked build tool and without the workspace's own sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

from packaging.metadata import ExceptionGroup, Metadata

from releaselib.packages import Package
from releaselib.processes import ReleaseError, run, tool

# Newer ones are refused by upload tools and indexes in use.
NEWEST_METADATA = (2, 4)


@dataclass(frozen=True)
class Distributions:
    """What one package was built into."""

    wheel: Path
    sdist: Path


def export(root: Path, commit: str, folder: Path) -> Path:
    """Write the tree of a commit into a new folder and return that."""
    archive = folder.with_suffix(".tar")
    archive.parent.mkdir(parents=True, exist_ok=True)
    run(["git", "archive", "--format=tar", f"--output={archive}", commit], cwd=root, what=f"reading {commit}")
    folder.mkdir()
    run(["tar", "-xf", archive, "-C", folder], cwd=root, what=f"reading {commit}")
    archive.unlink()
    return folder


def build(name: str, tree: Path, out: Path) -> Distributions:
    """Build a package of an exported tree: the sdist, and the wheel from it.

    Raises:
        ReleaseError: It cannot be built.
    """
    # --no-build-isolation: the builder of the lock, so neither a network nor another builder has a part in it.
    command = [tool("uv"), "build", "--offline", "--no-build-isolation", "--python", tool("python"), "--no-sources"]
    before = set(out.glob("*"))
    run([*command, "--package", name, "--out-dir", out], cwd=tree, what=f"building {name}")
    made = sorted(set(out.glob("*")) - before)
    wheels, sdists = ([path for path in made if path.name.endswith(end)] for end in (".whl", ".tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        raise ReleaseError(f"building {name} made {[path.name for path in made]}; one wheel and one sdist were wanted")
    return Distributions(wheels[0], sdists[0])


def check_metadata(package: Package, built: Distributions) -> None:
    """Check what an index checks at upload, and that name and version are those of the tag.

    Raises:
        ReleaseError: An index would refuse it.
    """
    run([tool("twine"), "check", "--strict", built.wheel, built.sdist], cwd=package.root, what="twine check --strict")
    text = _metadata_text(built.wheel)
    try:
        metadata = Metadata.from_email(text, validate=True)
    except ExceptionGroup as group:
        raise ReleaseError(f"{built.wheel.name}: {'; '.join(map(str, group.exceptions))}") from group
    version = Parser().parsestr(text)["Metadata-Version"]
    if tuple(map(int, version.split("."))) > NEWEST_METADATA:
        raise ReleaseError(
            f"{built.wheel.name} has metadata {version}: bound hatchling in build-constraint-dependencies"
        )
    if (metadata.name, str(metadata.version)) != (package.name, package.version):
        raise ReleaseError(f"{built.wheel.name} holds {metadata.name} {metadata.version}, not {package.tag}")


def wheels_of(distributions: Sequence[Distributions]) -> list[Path]:
    """The wheels alone."""
    return [one.wheel for one in distributions]


def _metadata_text(wheel: Path) -> str:
    with ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name).decode()
