# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Show one launch while it runs: what it runs on, a bar, and a line per step."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from verl_hw_core.facts.run_facts import device_of
from verl_hw_tools.demo.metrics import Step

_MOST_LINES = 40


class Numbered(Protocol):
    """A training step, whatever it measures."""

    @property
    def number(self) -> int:
        """The step, from 1."""


StepT = TypeVar("StepT", bound=Numbered)


class LaunchView(Generic[StepT]):
    """Progress of one launch. Use it as a context manager and call :meth:`update` often."""

    def __init__(
        self,
        console: Console,
        title: str,
        *,
        first: int,
        last: int,
        engines: int,
        describe: Callable[[StepT], str],
        starting: str,
    ) -> None:
        """Show a launch.

        Args:
            console: Where to show it.
            title: What it does.
            first: Its first step.
            last: Its last step.
            engines: How many training engines say what they run on.
            describe: Says what a step measured.
            starting: What happens first.
        """
        self._console = console
        self._describe = describe
        self._title = title
        self._before = first - 1
        self._total = last - self._before
        self._engines = engines
        self._shown_steps = 0
        self._platform_shown = False
        self._phase = starting
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(starting, total=self._total)

    def __enter__(self) -> "LaunchView[StepT]":
        self._console.print(f"[bold]{escape(self._title)}[/]", soft_wrap=True)
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, phase: str) -> None:
        """Show what happens now, beside the bar; a terminal without one gets a line."""
        if phase == self._phase:
            return
        self._phase = phase
        self._progress.update(self._task, description=phase)
        if not self._console.is_terminal:
            self._print(phase)

    def update(self, facts: Sequence[Mapping[str, Any]], steps: Sequence[StepT]) -> None:
        """Show what is new."""
        if len(facts) >= self._engines and not self._platform_shown:
            self._platform_shown = True
            for line in describe_facts(facts):
                self._print(line)
            self._progress.update(self._task, description="training")
        for step in steps[self._shown_steps :]:
            self._show(step)
        self._shown_steps = len(steps)
        self._progress.update(self._task, completed=self._shown_steps)

    def _show(self, step: StepT) -> None:
        done = step.number - self._before
        if done in (1, self._total) or done % math.ceil(self._total / _MOST_LINES) == 0:
            number = f"{step.number:>{len(str(self._before + self._total))}}"
            self._print(f"step {number}  {self._describe(step)}")

    def _print(self, line: str) -> None:
        self._console.print(f"  {escape(line)}", highlight=False, soft_wrap=True)


def describe_step(step: Step, earlier: Mapping[int, Step]) -> str:
    """Say what an SFT step measured, and whether it repeats the same step of an earlier launch, if there was one."""
    said = f"loss {step.loss:.4f}  grad norm {step.grad_norm:.4f}"
    if not earlier:
        return said
    before = earlier.get(step.number)
    equal = before is not None and (before.loss, before.grad_norm) == (step.loss, step.grad_norm)
    return f"{said}  {'equal' if equal else 'DIFFERENT'}"


def describe_facts(facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what the training processes ran on: a line for each different stack, naming the ranks and devices."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for fact in facts:
        engine = str(fact.get("engine")).rpartition(".")[2]
        stack = (
            f"platform {fact.get('platform')}, engine {engine} ({fact.get('strategy')}), "
            f"collectives {fact.get('ccl_backend')}, torch {fact.get('torch')}"
        )
        groups.setdefault(stack, []).append(fact)
    lines = []
    for stack, members in groups.items():
        kind = "simulated device" if any(fact.get("simulator") for fact in members) else "device"
        lines.append(stack)
        lines += [f"rank {fact.get('rank')} on {kind} {device_of(fact)}" for fact in members]
    # A process may have several engines.
    return list(dict.fromkeys(lines))
