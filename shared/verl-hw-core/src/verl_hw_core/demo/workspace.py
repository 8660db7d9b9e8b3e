# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The demo's output folder: fresh by default, and never at the cost of someone else's files."""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from verl_hw_core.errors import OutputFolderError

MARKER = ".verl-hw-demo.json"
_CONTENTS = frozenset(
    {MARKER, "summary.json", "simulator.log", "tiny-model", "other-weights", "train-data", "whole-run", "resumed-run"}
)
_BULKY = ("tiny-model", "other-weights", "train-data")
_CHECKPOINTS = "checkpoints"
_MOST_FOLDERS = 1000


@dataclass(frozen=True)
class Workspace:
    """Where one demo keeps its files.

    No folder's name is a Python identifier: the training processes run here, and Python would offer them for import.
    """

    root: Path

    @property
    def model(self) -> Path:
        """The model that is trained."""
        return self.root / "tiny-model"

    @property
    def other_model(self) -> Path:
        """The same model with other weights."""
        return self.root / "other-weights"

    @property
    def data(self) -> Path:
        """Training and held-out conversations."""
        return self.root / "train-data"

    @property
    def whole(self) -> "RunFolder":
        """The uninterrupted run."""
        return RunFolder(self.root / "whole-run")

    @property
    def resumed(self) -> "RunFolder":
        """The run that was resumed from the middle."""
        return RunFolder(self.root / "resumed-run")

    @property
    def summary(self) -> Path:
        """The result as JSON."""
        return self.root / "summary.json"

    @property
    def simulator_log(self) -> Path:
        """Output of starting the simulated device."""
        return self.root / "simulator.log"

    def drop_bulky(self) -> None:
        """Remove model, data and checkpoints; logs, metrics and the summary stay."""
        for folder in (*(self.root / name for name in _BULKY), self.whole.checkpoints, self.resumed.checkpoints):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class RunFolder:
    """Files of one torchrun launch."""

    root: Path

    @property
    def checkpoints(self) -> Path:
        """Folder of ``global_step_<n>``."""
        return self.root / _CHECKPOINTS

    @property
    def metrics(self) -> Path:
        """What verl's file logger writes."""
        return self.root / "metrics.jsonl"

    @property
    def facts(self) -> Path:
        """What the engines say they run on."""
        return self.root / "facts.jsonl"

    @property
    def launcher_log(self) -> Path:
        """Output of torchrun itself."""
        return self.root / "torchrun.log"

    @property
    def rank_logs(self) -> Path:
        """Output of each rank, in torchrun's layout."""
        return self.root / "rank-logs"


def open_workspace(vendor: str, wanted: Path | None) -> Workspace:
    """Create the output folder.

    Args:
        vendor: Names the default folder, ``outputs/demo-<vendor>``; a number is added when that exists.
        wanted: The folder that the user asked for. A former demo's folder is emptied and used again.

    Raises:
        OutputFolderError: The folder holds files that no demo wrote, or cannot be written.
    """
    root = _fresh_folder(vendor) if wanted is None else _asked_folder(wanted.expanduser().absolute())
    try:
        (root / MARKER).write_text(json.dumps({"vendor": vendor}) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputFolderError(f"cannot write into {root}: {error.strerror}; choose another --output") from error
    return Workspace(root)


def _fresh_folder(vendor: str) -> Path:
    parent = Path.cwd() / "outputs"
    try:
        parent.mkdir(exist_ok=True)
        writable = os.access(parent, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        return Path(tempfile.mkdtemp(prefix=f"verl-hw-demo-{vendor}-"))
    for number in range(1, _MOST_FOLDERS):
        folder = parent / (f"demo-{vendor}" if number == 1 else f"demo-{vendor}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise OutputFolderError(f"{parent} holds {_MOST_FOLDERS} demo folders already: remove some, or give --output")


def _asked_folder(root: Path) -> Path:
    try:
        root.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in root.iterdir()}
    except OSError as error:
        raise OutputFolderError(f"cannot use {root} as output folder: {error.strerror}") from error
    if names and (MARKER not in names or names - _CONTENTS):
        foreign = sorted(names - _CONTENTS)[:3] or sorted(names)[:3]
        raise OutputFolderError(
            f"{root} holds files that the demo did not write ({', '.join(foreign)}): "
            "give --output a new, an empty or a former demo's folder"
        )
    for name in names:
        entry = root / name
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    return root
