# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A workspace of the shape of ours, small enough to release in seconds."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from releaselib.cli import main

SPDX = "# SPDX-License-Identifier: Apache-2.0\n"
ROOT_PROJECT = """
[tool.uv.workspace]
members = ["shared/*", "packages/*"]
[tool.uv.sources]
verl-hw-core = { workspace = true }
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
"""
PROJECT = """
[build-system]
requires = ["hatchling>=1.27,<2"]
build-backend = "hatchling.build"
[project]
name = "{name}"
version = "0.1.0"
description = "A small package"
readme = "README.md"
license = "Apache-2.0"
requires-python = ">=3.10"
dependencies = {dependencies}
[tool.hatch.build.targets.wheel]
packages = ["src/{module}"]
"""
TEST = """
import {module}
def test_the_wheel_is_what_is_tested():
    assert {module}.value() == 1
"""


@dataclass
class Workspace:
    """The workspace and what is done to it."""

    root: Path

    def add(self, name: str, *dependencies: str) -> None:
        module = name.replace("-", "_")
        folder = self.folder(name)
        project = PROJECT.format(name=name, module=module, dependencies=list(dependencies))
        files = {
            "pyproject.toml": project,
            "README.md": f"# {name}\n\nText.\n",
            "CHANGELOG.md": f"# Changelog of {name}\n\n## 0.1.0 (unreleased)\n\n- First version.\n",
            f"src/{module}/__init__.py": "def value(number=1):\n    return number\n",
            f"tests/test_{module}.py": TEST.format(module=module),
        }
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)

    def folder(self, name: str) -> Path:
        return self.root / ("shared" if name.endswith(("core", "sim", "tools")) else "packages") / name

    def edit(self, name: str, path: str, old: str, new: str) -> None:
        file = self.folder(name) / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def git(self, *arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True).stdout

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change", "--allow-empty")

    def release(self, *arguments: str) -> int:
        """Run scripts/release.py on this workspace."""
        return main(["--root", str(self.root), *arguments])

    def prepared(self, name: str, version: str = "0.1.0") -> None:
        """Prepare and commit a release."""
        assert self.release("prepare", name, version) == 0
        self.commit()


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Someone")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "someone@example.org")
    made = Workspace(tmp_path / "workspace")
    made.root.mkdir()
    (made.root / "pyproject.toml").write_text(ROOT_PROJECT)
    (made.root / ".gitignore").write_text("dist/\n__pycache__/\n")
    made.add("verl-hw-core")
    made.add("verl-hw-sim")
    made.add("verl-hw-acme", "verl-hw-core>=0.1,<0.2")
    (made.folder("verl-hw-core") / "public_interface.toml").write_text('public = ["verl_hw_core"]\n')
    ours = Path(__file__).resolve().parents[2] / "scripts" / "releaselib"
    (made.root / "scripts" / "releaselib").mkdir(parents=True)
    for name in ("towncrier.toml", "changelog_section.md"):
        (made.root / "scripts" / "releaselib" / name).write_text((ours / name).read_text())
    made.git("init", "-q", "-b", "main")
    made.commit()
    return made
