# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run a check of a model in a child process and read what it found."""

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.processes import run_launcher
from verl_hw_tools.demo.devices import environment_of, require_components
from verl_hw_tools.errors import ModelCheckError
from verl_hw_tools.model_check.job import REFUSAL, REPORT, Job
from verl_hw_tools.model_check.results import Report

_STALL_SECONDS = 300.0
_LAST_LINES = 25


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the user asked for; see :class:`~verl_hw_tools.model_check.job.Job`."""

    spec: HardwareSpec
    model: Path
    real: bool
    modules: tuple[str, ...]
    full_size: bool
    tolerance: float
    trust_remote_code: bool


def run(settings: Settings, console: Console) -> Report:
    """Compare the two models.

    Args:
        settings: What to check, and where.
        console: Where to say what is done meanwhile.

    Raises:
        VerlHwError: They could not be compared; the message says why.
    """
    if not (settings.model / "config.json").is_file():
        raise ModelCheckError(f"{settings.model} is no folder with a model: it has no config.json")
    require_components(simulated=not settings.real)
    with tempfile.TemporaryDirectory(prefix="verl-hw-model-") as name:
        return _run(settings, Path(name), console)


def _run(settings: Settings, folder: Path, console: Console) -> Report:
    environment = environment_of(
        settings.spec,
        real=settings.real,
        devices=1,
        folder=folder,
        log=folder / "simulator.log",
        console=console,
    )
    Job(
        model=str(settings.model.absolute()),
        vendor=settings.spec.key,
        simulated=not settings.real,
        modules=settings.modules,
        full_size=settings.full_size,
        tolerance=settings.tolerance,
        trust_remote_code=settings.trust_remote_code,
    ).write(folder)
    log = folder / "log.txt"
    with console.status("Building both models and comparing them"):
        run_launcher(
            [sys.executable, "-m", "verl_hw_tools.model_check.program", str(folder)],
            environment=environment,
            folder=folder,
            log=log,
            watch=lambda: log.stat().st_size,
            stall_seconds=_STALL_SECONDS,
        )
    return _read(folder, log)


def _read(folder: Path, log: Path) -> Report:
    if (folder / REFUSAL).is_file():
        raise ModelCheckError((folder / REFUSAL).read_text(encoding="utf-8"))
    if not (folder / REPORT).is_file():
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        raise ModelCheckError("\n".join(["the comparison ended without a result:", *lines[-_LAST_LINES:]]))
    return Report.from_data(json.loads((folder / REPORT).read_text(encoding="utf-8")))
