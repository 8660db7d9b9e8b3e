# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from machine_speed import scaled

from verl_hw_core.errors import TrainingFailedError
from verl_hw_core.processes import MARK_ENV, run_launcher

# A launcher that, as torchrun does, starts a worker in a session of its own; the worker ignores SIGTERM.
WORKER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
LAUNCHER = f"""
import subprocess, sys, time
worker = subprocess.Popen([sys.executable, "-c", {WORKER!r}], start_new_session=True)
print(worker.pid, flush=True)
time.sleep(float(sys.argv[1]))
sys.exit(3)
"""


def launch(folder: Path, seconds: float, watch: Callable[[], object] = lambda: 0, stall: float = 30.0) -> int:
    return run_launcher(
        [sys.executable, "-c", LAUNCHER, str(seconds)],
        environment=dict(os.environ),
        folder=folder,
        log=folder / "log",
        watch=watch,
        stall_seconds=scaled(stall),
    )


def worker_pid(folder: Path) -> int:
    return int((folder / "log").read_text().split()[0])


def alive(pid: int) -> bool:
    try:
        state = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # a container without an init keeps what nobody waits for as a zombie


def test_exit_code_and_no_stray_worker(tmp_path: Path) -> None:
    assert launch(tmp_path, 0.5) == 3
    assert not alive(worker_pid(tmp_path))


def test_a_launch_without_progress_is_ended(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(TrainingFailedError, match=f"no progress for {scaled(1.0):.0f} s"):
        launch(tmp_path, 600, stall=1.0)
    assert time.monotonic() - start < scaled(20)
    assert not alive(worker_pid(tmp_path))


def test_progress_keeps_a_launch_going(tmp_path: Path) -> None:
    assert launch(tmp_path, scaled(2.0), watch=time.monotonic, stall=0.8) == 3


def test_an_interrupt_ends_launcher_and_worker(tmp_path: Path) -> None:
    def watch() -> None:
        if (tmp_path / "log").read_text().count("up"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch(tmp_path, 600, watch)
    assert not alive(worker_pid(tmp_path))


COMMAND = """
import os, sys
from pathlib import Path
from verl_hw_core.processes import run_launcher
folder = Path(sys.argv[1])
run_launcher(sys.argv[2:], environment=dict(os.environ), folder=folder, log=folder / "log", watch=lambda: 0,
             stall_seconds=600)
"""


def test_a_command_that_is_killed_takes_launcher_and_worker_along(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMMAND, str(tmp_path), sys.executable, "-c", LAUNCHER, "600"]
    log = tmp_path / "log"
    with subprocess.Popen(command) as process:
        wait_until(lambda: log.exists() and "up" in log.read_text())
        process.kill()
    wait_until(lambda: not alive(worker_pid(tmp_path)))


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + scaled(seconds)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_processes_of_others_are_left_alone(tmp_path: Path) -> None:
    environment = {**os.environ, MARK_ENV: "someone-else"}
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=environment) as other:
        launch(tmp_path, 0.2)
        assert other.poll() is None
        other.kill()


def test_a_program_that_cannot_start_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_launcher(
            [str(tmp_path / "missing")],
            environment={},
            folder=tmp_path,
            log=tmp_path / "log",
            watch=lambda: None,
            stall_seconds=5,
        )
