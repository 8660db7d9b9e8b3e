# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run verl's PPO trainer with a Ray of its own, and leave nothing of either behind."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from verl_hw_core.facts.run_facts import RUN_FACTS_ENV
from verl_hw_core.processes import run_launcher
from verl_hw_tools.demo.rl.settings import RlSettings, launch_command
from verl_hw_tools.demo.workspace import Workspace

# What Ray raises when its own processes need more than 30 s to start; it is a constant there.
RAY_STARTED_TOO_SLOWLY = "The current node timed out during startup"
_ATTEMPTS = 3
# A socket's path has at most 107 bytes, of which Ray needs 70 for its own names and 13 are the folder's name.
_LONGEST_PARENT = 24
_RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_COLOR_PREFIX": "0",
    # Processes that Ray starts in advance lack the environment that verl asks for, so none of them would be used.
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "TOKENIZERS_PARALLELISM": "false",
}


def train(
    settings: RlSettings,
    workspace: Workspace,
    options: Sequence[str],
    *,
    environment: Mapping[str, str],
    watch: Callable[[], object],
    stall_seconds: float,
) -> int:
    """Run the trainer to its end and return its exit code; Ray's own logs are kept when it failed.

    A busy machine may be too slow for Ray's start, before anything was trained: it is tried again, a few times.

    Args:
        settings: Size and kind of the run.
        workspace: Where everything is.
        options: verl's options.
        environment: The whole environment, but for where the run records what it does.
        watch: See :func:`~verl_hw_core.processes.run_launcher`.
        stall_seconds: See there.

    Raises:
        TrainingFailedError: The run made no progress for too long.
    """
    run = workspace.training
    with _ray_folder() as folder:
        for attempt in range(_ATTEMPTS):
            code = run_launcher(
                launch_command(settings, list(options)),
                environment={
                    **environment,
                    **_RAY_ENVIRONMENT,
                    "RAY_TMPDIR": str(folder),
                    "VERL_FILE_LOGGER_PATH": str(run.metrics),
                    RUN_FACTS_ENV: str(run.facts),
                },
                folder=workspace.root,
                log=run.driver_log,
                watch=watch,
                stall_seconds=stall_seconds,
            )
            if code == 0 or attempt + 1 == _ATTEMPTS or not _ray_was_too_slow(run.driver_log):
                break
        if code != 0:
            _keep_ray_logs(folder, workspace.ray_logs)
    return code


@contextmanager
def _ray_folder() -> Iterator[Path]:
    """A folder for Ray's sockets and logs, with a short name."""
    folder = Path(tempfile.mkdtemp(prefix="vhw-", dir=_ray_parent()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ray_parent() -> str:
    """The folder for temporary files, or ``/tmp`` where its name is too long for sockets, as a batch system's often is.

    Where there is no ``/tmp`` to write to, Ray fails and the demo says what helps.
    """
    parent, usual = tempfile.gettempdir(), "/tmp"  # noqa: S108 - mkdtemp makes a private folder in it
    too_long = len(os.fsencode(parent)) > _LONGEST_PARENT
    return usual if too_long and os.access(usual, os.W_OK | os.X_OK) else parent


def _ray_was_too_slow(log: Path) -> bool:
    return RAY_STARTED_TOO_SLOWLY in log.read_text(encoding="utf-8", errors="replace")


def _keep_ray_logs(folder: Path, kept: Path) -> None:
    for logs in folder.glob("ray/session_*/logs"):
        if not logs.parent.is_symlink():
            shutil.copytree(logs, kept, dirs_exist_ok=True, ignore_dangling_symlinks=True)
