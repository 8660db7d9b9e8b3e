# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the processes of a launch tell the command: one file of JSON lines a rank, appended to.

The process that writes may die at any moment, so the reader takes complete lines only.
"""

import json
import time
from pathlib import Path
from typing import Any

READY = "ready"
NOT_READY = "not_ready"
START = "start"
RESULT = "result"
END = "end"

EXITS_FILE = "exits.json"


def events_file(folder: Path, rank: int) -> Path:
    """File of a rank's events."""
    return folder / f"events-{rank}.jsonl"


def log_file(folder: Path, rank: int) -> Path:
    """File of a rank's output."""
    return folder / f"rank-{rank}.log"


class EventWriter:
    """Appends events to a rank's file."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._path = events_file(folder, rank)

    def write(self, kind: str, **contents: Any) -> None:
        """Append one event."""
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"event": kind, "at": time.time(), **contents}) + "\n")


class EventReader:
    """Reads what a rank has appended since the last time."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._path = events_file(folder, rank)
        self._offset = 0

    def read(self) -> list[dict[str, Any]]:
        """Return the new events."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            text = stream.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        return [json.loads(line) for line in complete.splitlines()]
