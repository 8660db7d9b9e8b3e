# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Show one launch while it runs: what it runs on, a bar, and a line per step."""

import math
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from verl_hw_core.demo.metrics import Step

_MOST_LINES = 40


class LaunchView:
    """Progress of one launch. Use it as a context manager and call :meth:`update` often."""

    def __init__(
        self, console: Console, title: str, *, first: int, last: int, processes: int, earlier: Sequence[Step] = ()
    ) -> None:
        """Show a launch.

        Args:
            console: Where to show it.
            title: What it does.
            first: Its first step.
            last: Its last step.
            processes: How many training processes it has.
            earlier: Steps of an earlier launch that this one should repeat exactly.
        """
        self._console = console
        self._earlier = {step.number: step for step in earlier}
        self._title = title
        self._before = first - 1
        self._total = last - self._before
        self._processes = processes
        self._shown_steps = 0
        self._platform_shown = False
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
        self._task = self._progress.add_task(f"starting {processes} processes", total=self._total)

    def __enter__(self) -> "LaunchView":
        self._console.print(f"[bold]{escape(self._title)}[/]", soft_wrap=True)
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def update(self, facts: Sequence[Mapping[str, Any]], steps: Sequence[Step]) -> None:
        """Show what is new."""
        if len(facts) >= self._processes and not self._platform_shown:
            self._platform_shown = True
            for line in describe_facts(facts):
                self._print(line)
            self._progress.update(self._task, description="training")
        for step in steps[self._shown_steps :]:
            self._show(step)
        self._shown_steps = len(steps)
        self._progress.update(self._task, completed=self._shown_steps)

    def _show(self, step: Step) -> None:
        done = step.number - self._before
        if done in (1, self._total) or done % math.ceil(self._total / _MOST_LINES) == 0:
            number = f"{step.number:>{len(str(self._before + self._total))}}"
            line = f"step {number}  loss {step.loss:.4f}  grad norm {step.grad_norm:.4f}"
            self._print(line + self._compared(step))

    def _compared(self, step: Step) -> str:
        if not self._earlier:
            return ""
        earlier = self._earlier.get(step.number)
        equal = earlier is not None and (earlier.loss, earlier.grad_norm) == (step.loss, step.grad_norm)
        return "  equal" if equal else "  DIFFERENT"

    def _print(self, line: str) -> None:
        self._console.print(f"  {escape(line)}", highlight=False, soft_wrap=True)


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
        lines += [f"rank {fact.get('rank')} on {kind} {fact.get('parameter_device')}" for fact in members]
    return lines
