# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Start ``verl-hw demo`` as a user does, follow it, and find whatever of it is still running."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from machine_speed import scaled

COMMAND = (sys.executable, "-c", "from verl_hw_tools.cli import main; main()", "demo")
TEST_RUN = "VERL_HW_TEST_RUN"


@dataclass
class Demo:
    """One started demo; everything that it starts inherits the mark."""

    process: "subprocess.Popen[str]"
    log: Path
    output: Path
    mark: str

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def wait(self, seconds: float = 500.0) -> int:
        return self.process.wait(timeout=scaled(seconds))

    def wait_for(self, text: str, file: Path | None = None, seconds: float = 240.0) -> None:
        """Wait until the output, or another file, holds a text."""
        deadline = time.monotonic() + scaled(seconds)
        while not ((file or self.log).exists() and text in (file or self.log).read_text(encoding="utf-8")):
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)

    def left(self) -> list[int]:
        """Living processes of this demo."""
        wanted = f"{TEST_RUN}={self.mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdecimal() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue  # it ended, or is not ours to look at
        return found


class Demos:
    """Starts demos below one folder."""

    def __init__(self, folder: Path, command: Sequence[str] = COMMAND) -> None:
        self.folder = folder
        self.command = command
        self.started: list[Demo] = []

    def start(self, *arguments: str, **environment: str) -> Demo:
        output, log, mark = self.folder / "out", self.folder / "log", uuid.uuid4().hex
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("VERL_")}
        with log.open("w") as file:
            process = subprocess.Popen(
                [*self.command, *arguments, "--output", str(output)],
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**inherited, "PYTHONIOENCODING": "utf-8", **environment, TEST_RUN: mark},
                start_new_session=True,  # a process group of its own, as a shell gives it
                text=True,
            )
        self.started.append(Demo(process, log, output, mark))
        return self.started[-1]


@contextmanager
def demos_below(folder: Path) -> Iterator[Demos]:
    """Demos that end with the block, whatever happened in it."""
    demos = Demos(folder)
    try:
        yield demos
    finally:
        for demo in demos.started:
            for pid in demo.left():
                with suppress(ProcessLookupError):  # it ended meanwhile
                    os.kill(pid, signal.SIGKILL)
            demo.process.wait(timeout=scaled(30))
