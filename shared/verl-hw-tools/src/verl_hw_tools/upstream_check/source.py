# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The source text of a verl: a checkout, an installation, a wheel or sdist, or a version that is fetched for it."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.version import InvalidVersion, Version

from verl_hw_tools.errors import VerlSourceError

FETCH_SECONDS = 180.0
"""How long the package index may take for a version that is not installed."""

_PACKAGE = "verl"
_VERSION_FILE = "verl/version/version"


@dataclass(frozen=True)
class VerlSource:
    """A verl as text.

    Attributes:
        place: Where it was read, for people.
        version: What it calls itself; ``"unknown"`` where it has no version file.
        modules: Module name to source.
        packages: Those of the modules that are packages.
    """

    place: str
    version: str
    modules: Mapping[str, str] = field(repr=False)
    packages: frozenset[str] = field(repr=False)


def find_source(wanted: str) -> VerlSource:
    """Read the verl that a path or a version names.

    Args:
        wanted: A checkout, a folder of installed packages, a wheel or sdist, or a version (``"0.9.1"``), which is the
            installed one or fetched from the package index.

    Raises:
        VerlSourceError: There is none, or it cannot be read or fetched.
    """
    path = Path(wanted).expanduser()
    if path.exists():
        return read(path)
    try:
        version = Version(wanted)
    except InvalidVersion as error:
        raise VerlSourceError(
            f"--verl {wanted!r} is neither a file or folder that exists nor a version such as 0.9.1"
        ) from error
    installed = installed_source()
    if installed is not None and Version(metadata.version(_PACKAGE)) == version:
        return installed
    with tempfile.TemporaryDirectory(prefix="verl-hw-") as folder:
        found = read(_fetch(version, Path(folder)))
    return VerlSource("package index", found.version, found.modules, found.packages)


def installed_source() -> VerlSource | None:
    """Read the verl of this environment without importing it; None where it has none."""
    try:
        metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    spec = importlib.util.find_spec(_PACKAGE)
    return None if spec is None or spec.origin is None else read(Path(spec.origin).parent)


def read(path: Path) -> VerlSource:
    """Read a verl from a folder that has it, or from a wheel or sdist.

    Raises:
        VerlSourceError: There is no verl, or it cannot be read.
    """
    try:
        files = _folder(path) if path.is_dir() else _archive(path)
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise VerlSourceError(f"{path} cannot be read: {error}") from error
    modules, packages = {}, set()
    for name, text in files.items():
        parts = PurePosixPath(name).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
            packages.add(".".join(parts))
        modules[".".join(parts)] = text
    version = modules.pop(_VERSION_FILE.replace("/", "."), "unknown").strip()
    if _PACKAGE not in packages:
        raise VerlSourceError(
            f"{path} holds no package verl: name a checkout, a folder of installed packages, a wheel or an sdist"
        )
    return VerlSource(str(path), version, modules, frozenset(packages))


def _wanted(name: str) -> bool:
    return name == _VERSION_FILE or (name.startswith(f"{_PACKAGE}/") and name.endswith(".py"))


def _folder(path: Path) -> dict[str, str]:
    root = path.parent if path.name == _PACKAGE and (path / "__init__.py").is_file() else path
    found = (root / _PACKAGE).rglob("*")
    names = {one.relative_to(root).as_posix(): one for one in found if one.is_file()}
    return {name: one.read_text(encoding="utf-8") for name, one in names.items() if _wanted(name)}


def _archive(path: Path) -> dict[str, str]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as wheel:
            return {name: wheel.read(name).decode() for name in wheel.namelist() if _wanted(name)}
    found = {}
    with tarfile.open(path) as sdist:
        for member in sdist:
            name = member.name.partition("/")[2]  # below <name>-<version>/
            content = sdist.extractfile(member) if _wanted(name) else None
            if content is not None:
                found[name] = content.read().decode()
    return found


def _fetch(version: Version, folder: Path) -> Path:
    """Fetch a version's wheel, whose code is not run, with what this environment has for it."""
    wanted = f"{_PACKAGE}=={version}"
    by_hand = f"pip download --no-deps --only-binary :all: '{wanted}', then --verl <the file>"
    try:
        done = subprocess.run(
            _command(wanted, folder),
            cwd=folder,
            env={**os.environ, "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise VerlSourceError(
            f"verl {version} was not fetched within {FETCH_SECONDS:.0f} s. Where the package index can be reached: "
            f"{by_hand}"
        ) from error
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
        raise VerlSourceError(f"verl {version} cannot be fetched: {last[0]}. By hand: {by_hand}")
    wheels = list(folder.glob("*.whl"))
    return wheels[0] if wheels else folder


def _command(wanted: str, folder: Path) -> Sequence[str]:
    only = ("--no-deps", "--only-binary", ":all:")
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable, "-m", "pip", "download", *only, "--dest", str(folder), wanted)
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.is_file() else shutil.which("uv")
    if uv is None:
        raise VerlSourceError(
            f"{wanted} is not installed, and this environment has neither pip nor uv to fetch it. Elsewhere: pip "
            f"download --no-deps --only-binary :all: '{wanted}', then --verl <the file>"
        )
    return (uv, "pip", "install", *only, "--target", str(folder), wanted)
