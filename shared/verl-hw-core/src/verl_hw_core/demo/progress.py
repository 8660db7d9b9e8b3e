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

    def __init__(self, console: Console, title: str, *, first: int, last: int, processes: int) -> None:
        """Show steps ``first`` to ``last`` of a launch with so many processes."""
        self._console = console
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
        self._task = self._progress.add_task(f"{title}: starting {processes} processes", total=self._total)

    def __enter__(self) -> "LaunchView":
        self._console.print(f"[bold]{escape(self._title)}[/]")
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
            for fact in facts:
                self._console.print(f"  {describe_fact(fact)}", highlight=False)
            self._progress.update(self._task, description=f"{self._title}: training")
        for step in steps[self._shown_steps :]:
            self._show(step)
        self._shown_steps = len(steps)
        self._progress.update(self._task, completed=self._shown_steps)

    def _show(self, step: Step) -> None:
        done = step.number - self._before
        if done in (1, self._total) or done % math.ceil(self._total / _MOST_LINES) == 0:
            held_out = "" if step.held_out_loss is None else f"  held-out loss {step.held_out_loss:.4f}"
            width = len(str(self._before + self._total))
            self._console.print(
                f"  step {step.number:>{width}}  loss {step.loss:.4f}  grad norm {step.grad_norm:.4f}{held_out}",
                highlight=False,
            )


def describe_fact(fact: Mapping[str, Any]) -> str:
    """One line about what a training process says it runs on."""
    engine = str(fact.get("engine")).rpartition(".")[2]
    origin = "simulated" if fact.get("simulator") else "real"
    text = (
        f"rank {fact.get('rank')}: platform {fact.get('platform')}, {origin} device {fact.get('parameter_device')}, "
        f"{engine} ({fact.get('strategy')}), collectives {fact.get('ccl_backend')}, torch {fact.get('torch')}"
    )
    return escape(text)
