# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The RL demo: verl's unmodified PPO trainer on Ray, on a task whose answers can be verified."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from verl_hw_core.errors import TrainingFailedError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.facts.run_facts import read_facts
from verl_hw_tools.demo.assets import write_model, write_tokenizer
from verl_hw_tools.demo.devices import RL_NEEDS, environment_of, require_components
from verl_hw_tools.demo.progress import LaunchView
from verl_hw_tools.demo.rl import chart
from verl_hw_tools.demo.rl.failure import explain
from verl_hw_tools.demo.rl.launch import train
from verl_hw_tools.demo.rl.metrics import RlStep, describe, read_rl_steps
from verl_hw_tools.demo.rl.settings import (
    ANSWERS_PER_PROMPT,
    PROMPTS_PER_STEP,
    RlSettings,
    overrides,
    write_data,
)
from verl_hw_tools.demo.rl.task import DESCRIPTION
from verl_hw_tools.demo.rl.verdict import RlVerdict, print_summary, write_summary
from verl_hw_tools.demo.workspace import Workspace, is_full, open_workspace, writing

# Ten processes import torch and verl before the first step, one after the other on a small machine.
STALL_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class RlDemo:
    """What the user asked for.

    Attributes:
        spec: The vendor's facts.
        settings: Size and kind of the demo.
        output: Output folder, or None for a fresh one.
        real: Use the vendor's hardware instead of a simulated device.
        keep: Keep model and data as well.
    """

    spec: HardwareSpec
    settings: RlSettings
    output: Path | None = None
    real: bool = False
    keep: bool = False


def run_rl_demo(demo: RlDemo, console: Console) -> RlVerdict:
    """Run the demo and print what it shows.

    Raises:
        VerlHwError: It could not be run; the message says why and what to do.
    """
    start = time.monotonic()
    require_components(simulated=not demo.real, more=RL_NEEDS)
    workspace = open_workspace(f"{demo.settings.algorithm}-{demo.spec.key}", demo.output)
    console.print(f"Outputs: {escape(str(workspace.root))}", highlight=False, soft_wrap=True)
    if not chart.can_draw():
        console.print(f"No picture of the reward will be drawn: {chart.HOW_TO_GET}", highlight=False, soft_wrap=True)
    with writing(workspace.root):
        verdict = _run(demo, workspace, console, start)
    print_summary(verdict, console)
    return verdict


def _run(demo: RlDemo, workspace: Workspace, console: Console, start: float) -> RlVerdict:
    environment = environment_of(
        demo.spec,
        real=demo.real,
        devices=demo.settings.workers,
        folder=workspace.root,
        log=workspace.simulator_log,
        console=console,
    )
    _build_assets(demo.settings, workspace, console)
    steps = _train(demo, workspace, environment, console)
    verdict = RlVerdict(
        spec=demo.spec,
        settings=demo.settings,
        facts=read_facts(workspace.training.facts),
        steps=steps,
        seconds=time.monotonic() - start,
        outputs=workspace.root,
        log=workspace.training.driver_log,
        metrics=workspace.training.metrics,
        chart=_draw(demo, steps, workspace.chart),
    )
    write_summary(verdict, workspace.summary)
    if verdict.passed and not demo.keep:
        workspace.drop_bulky()
    return verdict


def _build_assets(settings: RlSettings, workspace: Workspace, console: Console) -> None:
    write_tokenizer(workspace.model)
    parameters = write_model(workspace.model, settings.seed)
    prompts = write_data(workspace.data, settings)
    console.print(
        f'Task: {DESCRIPTION}; prompts as "{escape(prompts[0][0])}"\n'
        f"Model: Qwen2 with random weights, {parameters:,} parameters, byte-level tokenizer",
        highlight=False,
        soft_wrap=True,
    )


def _train(demo: RlDemo, workspace: Workspace, environment: Mapping[str, str], console: Console) -> list[RlStep]:
    settings, run = demo.settings, workspace.training
    run.root.mkdir()
    nodes = "" if settings.nodes == 1 else f" on {settings.nodes} simulated nodes"
    view: LaunchView[RlStep] = LaunchView(
        console,
        f"{settings.algorithm.upper()} with verl.trainer.main_ppo: {settings.steps} steps of {PROMPTS_PER_STEP} "
        f"prompts with {ANSWERS_PER_PROMPT} answers each, {settings.workers} workers{nodes}",
        first=1,
        last=settings.steps,
        engines=settings.engines,
        describe=describe,
        starting="starting Ray",
    )

    def watch() -> tuple[int, int, int]:
        facts, steps = read_facts(run.facts), read_rl_steps(run.metrics)
        view.say(_phase(run.driver_log, len(facts), settings.engines, len(steps)))
        view.update(facts, steps)
        return len(facts), len(steps), _size(run.driver_log)

    with view:
        code = train(
            settings,
            workspace,
            overrides(settings, workspace, run),
            environment=environment,
            watch=watch,
            stall_seconds=STALL_SECONDS,
        )
    if code != 0:
        full = ", and the disk of the output folder is full" if is_full(run.root) else ""
        raise TrainingFailedError(
            f"training failed{full}: {explain(run.driver_log, code)}\nRay's own logs: {workspace.ray_logs}"
        )
    return read_rl_steps(run.metrics)


def _phase(log: Path, engines: int, wanted: int, steps: int) -> str:
    """Say what happens now, from what the processes have written."""
    if steps:
        return "training"
    if engines >= wanted:
        return "generating the first answers"
    if engines:
        return f"loading the model, {engines} of {wanted} engines are up"
    return (
        "starting Ray" if _size(log) == 0 or b"Started a local Ray" not in log.read_bytes() else "importing verl in Ray"
    )


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _draw(demo: RlDemo, steps: list[RlStep], path: Path) -> Path | None:
    if not steps or not chart.can_draw():
        return None
    simulated = "" if demo.real else "simulated "
    title = f"verl {demo.settings.algorithm.upper()} on {simulated}{demo.spec.display_name}"
    chart.draw(steps, title, f"Task: {DESCRIPTION}", path)
    return path
