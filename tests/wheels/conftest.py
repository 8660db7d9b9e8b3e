# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The distributions under test, built once per session the way a release builds them."""

import zipfile
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from wheelkit import ROOT, from_index, uv


@dataclass(frozen=True)
class Built:
    """One member's wheel and sdist."""

    name: str
    wheel: Path
    sdist: Path

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    @property
    def files(self) -> list[str]:
        """Paths inside the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            return archive.namelist()

    def text(self, ending: str) -> str | None:
        """Text of the wheel's file whose path ends so, or None."""
        with zipfile.ZipFile(self.wheel) as archive:
            found = [name for name in archive.namelist() if name.endswith(ending)]
            return archive.read(found[0]).decode() if found else None

    @property
    def metadata(self) -> Message:
        """The wheel's METADATA."""
        text = self.text(".dist-info/METADATA")
        assert text is not None
        return Parser().parsestr(text)


@pytest.fixture(scope="session")
def members() -> list[str]:
    """Names of the workspace's members, from the tree."""
    return sorted(path.parent.name for path in ROOT.glob("*/verl-hw-*/pyproject.toml"))


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a wheel and an sdist of every member; each wheel was built from its sdist."""
    folder = tmp_path_factory.mktemp("dist")
    # In the root, whose build constraints count then.
    done = from_index([uv(), "build", "--all-packages", "--no-sources", "--out-dir", folder], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def built(dist: Path, members: list[str]) -> dict[str, Built]:
    """Every member's distributions by name."""
    found = {}
    for name in members:
        stem = name.replace("-", "_")
        (wheel,) = dist.glob(f"{stem}-*.whl")
        (sdist,) = dist.glob(f"{stem}-*.tar.gz")
        found[name] = Built(name, wheel, sdist)
    return found
