# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What an RL demo showed: judged from what verl and the training processes wrote, kept as JSON, printed as a table."""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_tools.acceptance.run import LEAST_STEPS
from verl_hw_tools.demo.metrics import finite_or_none
from verl_hw_tools.demo.rl.metrics import FEWEST_STEPS_TO_JUDGE, RlStep, Trend, all_finite, trend
from verl_hw_tools.demo.rl.settings import RlSettings
from verl_hw_tools.demo.table import (
    Row,
    cards_of,
    describe_stack,
    is_on_device,
    is_simulated,
    print_simulated,
    print_table,
    sparkline,
)

LARGEST_GAP = {"float32": 1e-4, "bfloat16": 5e-2}
"""Largest difference of a token's probability between rollout and trainer that rounding explains, with much room."""

LARGEST_KL = 1e-3
"""Largest KL divergence between them that rounding explains; weights that are one step old give a hundred times it."""


@dataclass(frozen=True, kw_only=True)
class RlVerdict:
    """Result of one RL demo.

    Attributes:
        spec: The vendor that was asked for.
        settings: Size and kind of the demo.
        facts: What every engine said it ran on.
        steps: What verl logged.
        seconds: How long everything took.
        outputs: Where the files are.
        log: Output of verl and of all processes.
        metrics: verl's log of the metrics.
        chart: The picture of the reward, or None where matplotlib is missing.
    """

    spec: HardwareSpec
    settings: RlSettings
    facts: Sequence[Mapping[str, Any]]
    steps: Sequence[RlStep]
    seconds: float
    outputs: Path
    log: Path
    metrics: Path
    chart: Path | None

    @property
    def on_device(self) -> bool:
        """Whether every engine ran on the platform asked for, each worker on a card of its own, with memory there."""
        allocated = bool(self.steps) and all(step.device_memory > 0 for step in self.steps)
        # Simulated nodes are one machine: each has a first card, and it is the same one.
        own_cards = cards_of(self.facts) == self.settings.processes
        return is_on_device(self.facts, self.spec, self.settings.engines) and allocated and own_cards

    @property
    def complete(self) -> bool:
        """Whether all steps were logged, with numbers."""
        numbers = [step.number for step in self.steps]
        return numbers == list(range(1, self.settings.steps + 1)) and all_finite(self.steps)

    @property
    def trend(self) -> Trend | None:
        """The reward's course; None where there are too few steps."""
        return trend(self.steps)

    @property
    def gap(self) -> float:
        """Largest difference of a token's probability between rollout and trainer over all steps."""
        return max((step.rollout_gap for step in self.steps), default=math.nan)

    @property
    def kl(self) -> float:
        """Largest KL divergence between rollout and trainer over all steps."""
        return max((step.rollout_kl for step in self.steps), default=math.nan)

    @property
    def rollout_agrees(self) -> bool:
        """Whether rollout and trainer computed the same probabilities in every step."""
        largest = LARGEST_GAP[self.settings.dtype]
        return bool(self.steps) and all(
            step.rollout_gap <= largest and step.rollout_kl <= LARGEST_KL for step in self.steps
        )

    @property
    def reward_rose(self) -> bool | None:
        """Whether the reward rose; None where there are too few steps to say."""
        if self.settings.steps < FEWEST_STEPS_TO_JUDGE:
            return None
        return self.trend is not None and self.trend.rose

    @property
    def passed(self) -> bool:
        """Whether the demo showed all that it should."""
        return self.on_device and self.complete and self.rollout_agrees and self.reward_rose is not False

    @property
    def simulated(self) -> bool:
        """Whether the processes say that their device was simulated."""
        return is_simulated(self.facts)


def write_summary(verdict: RlVerdict, path: Path) -> None:
    """Keep the result as JSON."""
    content = {
        "passed": verdict.passed,
        "algorithm": verdict.settings.algorithm,
        "vendor": verdict.spec.key,
        "simulated": verdict.simulated,
        "on_device": verdict.on_device,
        "facts": [dict(fact) for fact in verdict.facts],
        "complete": verdict.complete,
        "rewards": [finite_or_none(step.reward) for step in verdict.steps],
        "reward_rose": verdict.reward_rose,
        "rollout_agrees": verdict.rollout_agrees,
        "dtype": verdict.settings.dtype,
        "largest_probability_difference": finite_or_none(verdict.gap),
        "largest_rollout_kl": finite_or_none(verdict.kl),
        "seconds": round(verdict.seconds, 1),
    }
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def print_summary(verdict: RlVerdict, console: Console) -> None:
    """Print the result as a short table."""
    rows: list[Row] = [
        ("on the device", verdict.on_device, describe_stack(verdict.facts, verdict.settings.engines)),
        ("reward rose", verdict.reward_rose, _rewards(verdict)),
        ("rollout agrees", verdict.rollout_agrees, _agreement(verdict)),
        ("all steps", verdict.complete, f"{len(verdict.steps)} of {verdict.settings.steps} logged, all numbers finite"),
        ("time", None, _time(verdict)),
    ]
    print_table(f"verl {verdict.settings.algorithm.upper()} on {verdict.spec.display_name}", rows, console)
    for name, path in (("Chart", verdict.chart), ("Metrics", verdict.metrics), ("Log", verdict.log)):
        if path is not None:
            console.print(f"{name}: {escape(str(path))}", soft_wrap=True, highlight=False)
    steps = verdict.settings.steps
    if steps >= LEAST_STEPS:
        judge = f"verl-hw accept {escape(shlex.quote(str(verdict.metrics)))} --steps {steps} --total-steps {steps}"
        console.print(f"Judge it as a run on hardware is judged: {judge}", soft_wrap=True, highlight=False)
    if verdict.simulated:
        print_simulated(verdict.spec, console)


def _rewards(verdict: RlVerdict) -> str:
    steps, course = verdict.steps, verdict.trend
    if not steps:
        return "no step was logged"
    said = f"from {steps[0].reward:.3f} (step {steps[0].number}) to {steps[-1].reward:.3f} (step {steps[-1].number})"
    if course is None:
        return f"{said}; too few steps, or not finite, to judge a trend"
    said += f", mean of the first {course.averaged} {course.first:.3f}, of the last {course.averaged} {course.last:.3f}"
    return f"{said}, correlation with the step {course.correlation:.2f}  {sparkline([step.reward for step in steps])}"


def _agreement(verdict: RlVerdict) -> str:
    rounded = "" if verdict.settings.dtype == "float32" else f" in {verdict.settings.dtype}"
    if verdict.rollout_agrees:
        return (
            "largest difference of a token's probability between rollout and trainer "
            f"{verdict.gap:.1e}{rounded}: the weights of every step arrived"
        )
    return (
        f"a token's probability differs by {verdict.gap:.1e}{rounded} between rollout and trainer; largest KL "
        f"divergence {verdict.kl:.1e}"
    )


def _time(verdict: RlVerdict) -> str:
    training = sum(step.seconds for step in verdict.steps)
    return f"{verdict.seconds:.0f} s, {training:.0f} s of them in training steps"
