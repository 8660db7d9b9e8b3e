# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Put a new package in its place: whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from verl_hw_tools.errors import OutputFolderError


def check_vacant(folder: Path) -> None:
    """Check that a folder is not there yet, or empty.

    Raises:
        OutputFolderError: It holds something, or is none.
    """
    try:
        occupied = folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir())))
    except OSError as error:
        raise OutputFolderError(f"{folder} cannot be looked at: {error.strerror or error}") from error
    if occupied:
        raise OutputFolderError(
            f"{folder} exists already and is not an empty folder: nothing was written; choose another"
        )


def write_tree(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder that is not there yet. What goes wrong leaves nothing behind.

    Args:
        folder: The new folder, or an empty one.
        files: Text by path in it.

    Raises:
        OutputFolderError: The folder holds something, or cannot be written.
    """
    check_vacant(folder)
    folder = folder.absolute()
    begun: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Beside its place, so that one rename ends it; in an empty folder that is there, so that it stays the folder
        # that a shell is in, or that a container mounts.
        begun = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder if folder.exists() else folder.parent))
        for name, text in files.items():
            path = begun / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        begun.chmod(0o777 & ~_umask())
        if folder.exists():
            _fill(folder, begun)
        else:
            begun.rename(folder)
    except OSError as error:
        raise OutputFolderError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        if begun is not None:
            shutil.rmtree(begun, ignore_errors=True)


def _fill(folder: Path, begun: Path) -> None:
    """Move everything from ``begun`` into the empty folder that it lies in; what fails is taken back."""
    done: list[Path] = []
    try:
        for entry in sorted(begun.iterdir()):
            done.append(entry.rename(folder / entry.name))
    except BaseException:  # an interrupt as well
        for path in done:
            path.rename(begun / path.name)
        raise


def replace_files(files: Mapping[Path, str]) -> None:
    """Replace files, each in one step.

    Raises:
        OutputFolderError: One cannot be written; those before it are put back.
    """
    before = {path: path.read_text(encoding="utf-8") for path in files}
    done: list[Path] = []
    try:
        for path, text in files.items():
            _replace(path, text)
            done.append(path)
    except OSError as error:
        for path in done:
            _replace(path, before[path])
        raise OutputFolderError(f"{error.filename or 'a file'} cannot be written: {error.strerror or error}") from error


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.chmod(path.stat().st_mode)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _umask() -> int:
    present = os.umask(0)
    os.umask(present)
    return present
