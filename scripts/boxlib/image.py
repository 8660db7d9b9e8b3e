# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The image that a box runs in: what it has, and which of the box's packages are put on the path beside it.

The image's own distributions stay as they are and are used wherever they satisfy what the box's packages ask for, a
vendor's patched Ray included. torch and numpy are never replaced. Standard library only, until the path is set.
"""

import hashlib
import json
import re
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

MANIFEST, ARCHIVE = "box.json", "packages.tar.xz"


class BoxError(Exception):
    """The box cannot run here; the message says what was wanted, what was found and what to do."""


@dataclass(frozen=True, kw_only=True)
class Carried:
    """A distribution in the box.

    Attributes:
        name: Normalized name.
        version: Its version.
        wanted: What the box's packages ask of it, as a specifier set; empty for any version.
        ours: One of this project's wheels, which is used whatever the image has.
    """

    name: str
    version: str
    wanted: str
    ours: bool


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What ``box.json`` says.

    Attributes:
        vendor: Platform key of the wheel in the box.
        python: Python that the box was built for, as ``"3.12"``.
        revision: Commit that it was built from.
        simulator: Whether the simulator is in it.
        sha256: Of the archive.
        needed: What the image must have, with what is asked of each, by name.
        carried: The distributions in the archive.
    """

    vendor: str
    python: str
    revision: str
    simulator: bool
    sha256: str
    needed: dict[str, str]
    carried: tuple[Carried, ...]


def read_manifest(box: Path) -> Manifest:
    """Read ``box.json``.

    Raises:
        BoxError: There is none, or it is no manifest.
    """
    try:
        data = json.loads((box / MANIFEST).read_text(encoding="utf-8"))
        return Manifest(**{**data, "carried": tuple(Carried(**one) for one in data["carried"])})
    except FileNotFoundError as error:
        raise BoxError(f"no {MANIFEST} beside this script: build a box with  python3 scripts/dev.py box OUT") from error
    except (ValueError, TypeError, KeyError) as error:
        raise BoxError(f"{MANIFEST} cannot be read ({error}): copy the box again, whole") from error


def installed() -> dict[str, str]:
    """Return the version of every distribution of the running Python, by normalized name; the first on the path."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(normalized(name), distribution.version)
    return found


def normalized(name: str) -> str:
    """Return a distribution's name as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def require_image(manifest: Manifest, image: Mapping[str, str]) -> list[str]:
    """Check the interpreter and what the image must have.

    Returns:
        Remarks for people: what the image has in a version that the box's packages do not ask for.

    Raises:
        BoxError: Another Python, or something is missing.
    """
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if running != manifest.python:
        raise BoxError(
            f"this box was built for Python {manifest.python}, and this is {running}: run it with the image's "
            f"python{manifest.python}, or build another with --python {running}"
        )
    missing = [name for name in manifest.needed if name not in image]
    if missing:
        raise BoxError(
            f"this Python has no {', no '.join(missing)}: the box brings none of it. Run the script with the Python "
            f"of the image that has torch (this one is {sys.executable})"
        )
    satisfied = _checker()
    return [
        f"the image's {name} {image[name]} is outside what the box's packages ask for ({wanted}); it stays"
        for name, wanted in manifest.needed.items()
        if not satisfied(image[name], wanted)
    ]


def chosen(manifest: Manifest, image: Mapping[str, str]) -> list[Carried]:
    """Return what is taken from the box: what the image lacks, or has in a version that does not do."""
    satisfied = _checker()
    return [
        one
        for one in manifest.carried
        if one.ours or one.name not in image or not satisfied(image[one.name], one.wanted)
    ]


def _checker() -> Callable[[str, str], bool]:
    """Return what compares versions: packaging comes with transformers, which the image has."""
    try:
        from packaging.specifiers import SpecifierSet
        from packaging.version import InvalidVersion, Version
    except ImportError as error:
        raise BoxError("this Python has no packaging, which transformers brings: has the image got it?") from error

    def satisfied(version: str, wanted: str) -> bool:
        try:
            # A vendor's build is its base version: 2.51.1+mlu is 2.51.1.
            public = Version(version).public
        except InvalidVersion:
            return False
        return SpecifierSet(wanted).contains(public, prereleases=True)

    return satisfied


def unpack(box: Path, manifest: Manifest, names: set[str], site: Path) -> None:
    """Unpack distributions into a folder for the path.

    Args:
        box: The box.
        manifest: Its manifest.
        names: The distributions.
        site: A folder that is there.

    Raises:
        BoxError: The archive is damaged.
    """
    archive = box / ARCHIVE
    try:
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if digest != manifest.sha256:
            raise BoxError(f"{ARCHIVE} is not the one that {MANIFEST} was written for: copy the box again, whole")
        with tarfile.open(archive, "r:xz") as packed:
            for member in packed:
                name, _, path = member.name.partition("/")
                if name in names and path:
                    member.name = path
                    packed.extract(member, site, filter="data")
    except (OSError, tarfile.TarError, EOFError) as error:
        raise BoxError(f"{ARCHIVE} cannot be unpacked into {site}: {error}") from error
