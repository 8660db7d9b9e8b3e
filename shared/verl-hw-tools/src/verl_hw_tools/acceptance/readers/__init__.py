# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Read a run from a log, whichever of the formats it has.

The format is told from the content: names of files say little (a console log is kept as .txt, .out or .log).
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

from verl_hw_tools.acceptance.readers import console, csv_export, file_logger, tensorboard
from verl_hw_tools.acceptance.run import Run, RunBuilder
from verl_hw_tools.errors import UnreadableLogError

_LOOKED_AT = 4 * 2**20
_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
"""How files of gzip, zip, bzip2, xz and zstd begin."""
_FORMATS = (
    "verl's console log (lines with 'step:1 - ...'), verl's file logger (JSON lines), TensorBoard event files, or CSV "
    "exported from wandb or SwanLab"
)


def read_run(path: Path, *, resumed: bool = False) -> Run:
    """Read one run.

    Args:
        path: A log, or a folder with the event files or the CSV files of one run.
        resumed: See :class:`~verl_hw_tools.acceptance.run.RunBuilder`.

    Raises:
        UnreadableLogError: There is nothing readable of a known format.
        DamagedLogError: The log is damaged or cut off.
        DuplicateStepsError: Steps appear twice.
        MissingMetricError: It holds no reward.
    """
    try:
        return _read(path, resumed)
    except OSError as error:
        raise UnreadableLogError(f"{path} cannot be read: {error.strerror or error}. Wanted: {_FORMATS}") from error


def _read(path: Path, resumed: bool) -> Run:
    if path.is_dir():
        name, files = _in_folder(path)
    else:
        name, files = _format(path), [path]
    reader, log_format = _READERS[name]
    # Names of files may hold bytes that are no text, and this one is printed and drawn.
    source = os.fsencode(path).decode("utf-8", errors="backslashreplace")
    builder = RunBuilder(source, log_format, resumed=resumed)
    for file in files:
        reader(file, builder)
    return builder.build()


def _format(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(_LOOKED_AT)
    if not head.strip():
        raise UnreadableLogError(f"{path} is empty. Wanted: {_FORMATS}")
    if head.startswith(_COMPRESSED):
        raise UnreadableLogError(f"{path} is compressed: unpack it first. Wanted: {_FORMATS}")
    if tensorboard.is_event_file(path, head):
        return "tensorboard"
    if b"\0" in head[:4096]:
        raise UnreadableLogError(f"{path} is a binary file and no TensorBoard event file. Wanted: {_FORMATS}")
    text = head.decode("utf-8", errors="replace")
    if console.STEP_LINE.search(text):
        return "console"
    if text.lstrip().startswith("{"):
        return "file"
    if csv_export.is_header(text.lstrip("\ufeff \r\n").partition("\n")[0]):
        return "csv"
    if len(head) == _LOOKED_AT and _has_step(path):
        return "console"
    if re.search(r"Training Progress:|TaskRunner|main_ppo", text):
        raise UnreadableLogError(
            f"{path} looks like a log of verl without a single step in it: training failed before the first one, or "
            "trainer.logger has no 'console'. Look at its end"
        )
    raise UnreadableLogError(f"{path} is none of the logs that can be judged. Wanted: {_FORMATS}")


def _has_step(path: Path) -> bool:
    """Whether a step is anywhere: the processes of a run may print much before the first one."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return any(console.STEP_LINE.search(line) for line in file)


def _in_folder(folder: Path) -> tuple[str, list[Path]]:
    events = sorted(path for path in folder.rglob("*tfevents*") if path.is_file())
    parents = sorted({path.parent for path in events})
    if len(parents) == 1:
        return "tensorboard", events
    if parents:
        listed = ", ".join(str(path) for path in parents[:6])
        raise UnreadableLogError(f"{folder} holds event files of {len(parents)} runs. Give one of them: {listed}")
    tables = sorted(folder.glob("*.csv"))
    if tables:
        return "csv", tables
    files = sorted(path.name for path in folder.iterdir() if path.is_file())
    found = f"the files {', '.join(files[:6])}" if files else "no file"
    raise UnreadableLogError(
        f"{folder} is a folder with neither event files nor CSV files; it has {found}. Give the log itself: {_FORMATS}"
    )


_READERS: dict[str, tuple[Callable[[Path, RunBuilder], None], str]] = {
    "console": (console.read, "console log"),
    "file": (file_logger.read, "file logger"),
    "tensorboard": (tensorboard.read, "TensorBoard events"),
    "csv": (csv_export.read, "CSV export"),
}
