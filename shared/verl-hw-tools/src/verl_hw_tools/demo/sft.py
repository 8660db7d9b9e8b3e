# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The SFT demo: verl's unmodified trainer under torchrun, a checkpoint in the middle, and an exact resume from it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from verl_hw_core.errors import TrainingFailedError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.facts.run_facts import RUN_FACTS_ENV, read_facts
from verl_hw_core.processes import run_launcher
from verl_hw_tools.demo.assets import write_assets
from verl_hw_tools.demo.devices import environment_of, require_components
from verl_hw_tools.demo.failure import explain
from verl_hw_tools.demo.metrics import Step, compare_resumed, read_steps
from verl_hw_tools.demo.pairs import collect_pairs
from verl_hw_tools.demo.progress import LaunchView, describe_step
from verl_hw_tools.demo.sft_config import SftSettings, launch_command, overrides
from verl_hw_tools.demo.verdict import Verdict, print_summary, write_summary
from verl_hw_tools.demo.workspace import RunFolder, Workspace, is_full, open_workspace, writing

# Importing verl takes about ten seconds of CPU per process, and machines differ by more than that.
STALL_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class SftDemo:
    """What the user asked for.

    Attributes:
        spec: The vendor's facts.
        settings: Size and kind of the demo.
        output: Output folder, or None for a fresh one.
        real: Use the vendor's hardware instead of a simulated device.
        keep: Keep model, data and checkpoints as well.
    """

    spec: HardwareSpec
    settings: SftSettings
    output: Path | None = None
    real: bool = False
    keep: bool = False


def run_sft_demo(demo: SftDemo, console: Console) -> Verdict:
    """Run the demo and print what it shows.

    Raises:
        VerlHwError: It could not be run; the message says why and what to do.
    """
    start = time.monotonic()
    require_components(simulated=not demo.real)
    workspace = open_workspace(demo.spec.key, demo.output)
    console.print(f"Outputs: {escape(str(workspace.root))}", highlight=False, soft_wrap=True)
    with writing(workspace.root):
        verdict = _run(demo, workspace, console, start)
    print_summary(verdict, console)
    return verdict


def _run(demo: SftDemo, workspace: Workspace, console: Console, start: float) -> Verdict:
    settings = demo.settings
    environment = environment_of(
        demo.spec,
        real=demo.real,
        devices=settings.processes,
        folder=workspace.root,
        log=workspace.simulator_log,
        console=console,
    )
    _build_assets(settings, workspace, console)

    launcher = _Launcher(settings=settings, workspace=workspace, environment=environment, console=console)
    whole = launcher.train()
    resumed = launcher.resume(whole)

    verdict = Verdict(
        spec=demo.spec,
        settings=settings,
        facts=read_facts(workspace.whole.facts) + read_facts(workspace.resumed.facts),
        whole=whole,
        comparison=compare_resumed(whole, resumed, settings.resume_from + 1, settings.steps),
        seconds=time.monotonic() - start,
        outputs=workspace.root,
    )
    write_summary(verdict, workspace.summary)
    if verdict.passed and not demo.keep:
        workspace.drop_bulky()
    return verdict


def _build_assets(settings: SftSettings, workspace: Workspace, console: Console) -> None:
    with console.status("Building a tiny model and its data"):
        pairs = collect_pairs(settings.pairs, settings.seed)
        parameters = write_assets(
            workspace.model, workspace.other_model, workspace.data, pairs, settings.held_out, settings.seed
        )
    example = pairs[-1]
    console.print(
        f"Data: {len(pairs)} questions and answers, as "
        f'"{escape(example.question)}" "{escape(example.answer)}"\n'
        f"Model: Qwen2 with random weights, {parameters:,} parameters, byte-level tokenizer",
        highlight=False,
        soft_wrap=True,
    )


@dataclass(frozen=True, kw_only=True)
class _Launcher:
    """Runs verl's trainer twice: from the start, then from the checkpoint of the first run."""

    settings: SftSettings
    workspace: Workspace
    environment: Mapping[str, str]
    console: Console

    def train(self) -> list[Step]:
        """Train all steps, with a checkpoint in the middle, and return them."""
        title = f"Training {self.settings.steps} steps, checkpoint at step {self.settings.resume_from}"
        return self._launch(self.workspace.whole, None, self._view(title, first=1))

    def resume(self, whole: Sequence[Step]) -> list[Step]:
        """Train the second half again in new processes, from the checkpoint alone, and return its steps."""
        step = self.settings.resume_from
        checkpoint = self.workspace.whole.checkpoints / f"global_step_{step}"
        if not checkpoint.is_dir():
            raise TrainingFailedError(f"the training left no checkpoint of step {step} in {checkpoint.parent}")
        title = f"Resuming from the checkpoint of step {step}, in new processes with other initial weights"
        return self._launch(self.workspace.resumed, checkpoint, self._view(title, first=step + 1, earlier=whole))

    def _view(self, title: str, *, first: int, earlier: Sequence[Step] = ()) -> LaunchView[Step]:
        processes = self.settings.processes
        return LaunchView(
            self.console,
            title,
            first=first,
            last=self.settings.steps,
            engines=processes,
            describe=partial(describe_step, earlier={step.number: step for step in earlier}),
            starting=f"starting {processes} processes",
        )

    def _launch(self, run: RunFolder, checkpoint: Path | None, view: LaunchView[Step]) -> list[Step]:
        run.root.mkdir()

        def watch() -> tuple[int, int, int]:
            facts, steps = read_facts(run.facts), read_steps(run.metrics)
            view.update(facts, steps)
            return len(facts), len(steps), _log_size(run)

        options = overrides(self.settings, self.workspace, run, checkpoint)
        recording = {"VERL_FILE_LOGGER_PATH": str(run.metrics), RUN_FACTS_ENV: str(run.facts)}
        with view:
            code = run_launcher(
                launch_command(self.settings, run, options),
                environment={**self.environment, **recording},
                folder=self.workspace.root,
                log=run.launcher_log,
                watch=watch,
                stall_seconds=STALL_SECONDS,
            )
        if code != 0:
            full = ", and the disk of the output folder is full" if is_full(run.root) else ""
            raise TrainingFailedError(f"training failed{full}: {explain(run.launcher_log, run.rank_logs, code)}")
        return read_steps(run.metrics)


def _log_size(run: RunFolder) -> int:
    logs = [run.launcher_log, *run.rank_logs.rglob("*.log")]
    return sum(path.stat().st_size for path in logs if path.exists())
