# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The demo's output folder: fresh by default, and never at the cost of someone else's files."""

import errno
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from verl_hw_core.errors import VerlHwError
from verl_hw_tools.errors import OutputFolderError

MARKER = ".verl-hw-demo.json"
_CONTENTS = frozenset(
    {MARKER, "summary.json", "simulator.log", "tiny-model", "other-weights", "train-data", "whole-run", "resumed-run"}
    | {"training-run", "reward.png", "ray-logs"}
)
_BULKY = ("tiny-model", "other-weights", "train-data")
_CHECKPOINTS = "checkpoints"
_MOST_FOLDERS = 1000
_LEAST_ROOM = 2**17
# Network file systems are often mounted without locks; the demo works there without the protection.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class Workspace:
    """Where one demo keeps its files.

    No folder's name is a Python identifier: the training processes run here, and Python would offer them for import.

    Attributes:
        root: The output folder.
        lock: The marker file, locked as long as this object lives, so that no other demo empties the folder.
    """

    root: Path
    lock: TextIO | None = field(default=None, repr=False, compare=False)

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
    def training(self) -> "RunFolder":
        """The only run of a demo that has one."""
        return RunFolder(self.root / "training-run")

    @property
    def chart(self) -> Path:
        """The reward's curve."""
        return self.root / "reward.png"

    @property
    def ray_logs(self) -> Path:
        """Ray's own logs, kept when a run failed."""
        return self.root / "ray-logs"

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
        runs = (self.whole, self.resumed, self.training)
        for folder in (*(self.root / name for name in _BULKY), *(run.checkpoints for run in runs)):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class RunFolder:
    """Files of one launch."""

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
    def driver_log(self) -> Path:
        """Output of verl's PPO trainer, and of all Ray processes that it prints."""
        return self.root / "main_ppo.log"

    @property
    def rank_logs(self) -> Path:
        """Output of each rank, in torchrun's layout."""
        return self.root / "rank-logs"


def open_workspace(name: str, wanted: Path | None) -> Workspace:
    """Create the output folder.

    Args:
        name: Names the default folder, ``outputs/demo-<name>``; a number is added when that exists.
        wanted: The folder that the user asked for. A former demo's folder is emptied and used again.

    Raises:
        OutputFolderError: The folder holds files that no demo wrote, or cannot be written.
    """
    root = _fresh_folder(name) if wanted is None else wanted.expanduser().absolute()
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(root)
        lock = _lock(root / MARKER)
        _empty(root)
        lock.truncate(0)
        lock.write(json.dumps({"demo": name}) + "\n")
        lock.flush()
    return Workspace(root, lock)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn whatever keeps files from being written below ``folder`` into one error.

    Raises:
        OutputFolderError: No room, no right, a file where a folder should be.
    """
    try:
        yield
    except VerlHwError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputFolderError(f"cannot write into {folder}: {reason}; choose another --output") from error


def is_full(folder: Path) -> bool:
    """Whether there is no room left for a log file, which would say why something failed."""
    return shutil.disk_usage(folder).free < _LEAST_ROOM


def _fresh_folder(name: str) -> Path:
    try:
        parent = Path.cwd() / "outputs"
        parent.mkdir(exist_ok=True)
        writable = os.access(parent, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        return Path(tempfile.mkdtemp(prefix=f"verl-hw-demo-{name}-"))
    for number in range(1, _MOST_FOLDERS):
        folder = parent / (f"demo-{name}" if number == 1 else f"demo-{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise OutputFolderError(f"{parent} holds {_MOST_FOLDERS} demo folders already: remove some, or give --output")


def _refuse_foreign(root: Path) -> None:
    names = {entry.name for entry in root.iterdir()}
    if names and (MARKER not in names or names - _CONTENTS):
        foreign = sorted(names - _CONTENTS)[:3] or sorted(names)[:3]
        raise OutputFolderError(
            f"{root} holds files that the demo did not write ({', '.join(foreign)}): "
            "give --output a new, an empty or a former demo's folder"
        )


def _lock(marker: Path) -> TextIO:
    file = marker.open("a", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise OutputFolderError(f"another demo is running in {marker.parent}: choose another --output") from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return file


def _empty(root: Path) -> None:
    for entry in root.iterdir():
        if entry.name == MARKER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
