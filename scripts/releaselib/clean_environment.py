# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Environments that hold the locked stack (verl, torch, Ray ...) and built wheels of ours, made without a network."""

import os
import shutil
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from releaselib.processes import run, tool

_OURS = ("verl_hw_", "_editable_impl_verl_hw", "__pycache__")


def link_stack(folder: Path) -> Path:
    """Link the locked environment's packages into a folder, none of ours among them.

    It costs nothing; ``.pth`` files stay behind, among them those of the editable members.
    """
    folder.mkdir(exist_ok=True)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.suffix == ".pth" or entry.name.startswith(_OURS):
            continue
        if entry.suffix == ".dist-info":  # uv does not look into one that is a link
            shutil.copytree(entry, folder / entry.name, copy_function=os.symlink)
        else:
            (folder / entry.name).symlink_to(entry)
    return folder


def make(folder: Path, wheels: Sequence[Path]) -> Path:
    """Make an environment of the locked stack and these wheels, and return its Python.

    Raises:
        ReleaseError: A wheel cannot be installed, or what is installed does not fit together.
    """
    run([tool("uv"), "venv", "--offline", "--python", tool("python"), folder], cwd=folder.parent, what="uv venv")
    [site] = folder.glob("lib/python*/site-packages")
    for entry in site.iterdir():
        if entry.name.startswith("_virtualenv"):  # the stack has its own
            entry.unlink()
    link_stack(site)
    python = folder / "bin" / "python"
    pip = [tool("uv"), "pip"]
    run(
        [*pip, "install", "--offline", "--no-index", "--no-deps", "--python", python, *wheels],
        cwd=folder,
        what="install",
    )
    run([*pip, "check", "--python", python], cwd=folder, what="uv pip check")
    return python
