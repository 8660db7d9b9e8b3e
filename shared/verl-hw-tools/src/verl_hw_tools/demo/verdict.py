# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a demo showed: judged from what the training processes wrote, kept as JSON, printed as a table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_tools.demo.metrics import Comparison, Step, finite_or_none, loss_fell
from verl_hw_tools.demo.sft_config import SftSettings
from verl_hw_tools.demo.table import (
    Row,
    describe_stack,
    is_on_device,
    is_simulated,
    print_simulated,
    print_table,
    sparkline,
)

_MOST_DIFFERENCES = 4


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Result of one SFT demo.

    Attributes:
        spec: The vendor that was asked for.
        settings: Size and kind of the demo.
        facts: What every process of both launches said it ran on.
        whole: Steps of the uninterrupted run.
        comparison: What the resumed run repeated of it.
        seconds: How long everything took.
        outputs: Where the files are.
    """

    spec: HardwareSpec
    settings: SftSettings
    facts: Sequence[Mapping[str, Any]]
    whole: Sequence[Step]
    comparison: Comparison
    seconds: float
    outputs: Path

    @property
    def on_device(self) -> bool:
        """Whether every process of both launches ran on the platform and device that were asked for."""
        return is_on_device(self.facts, self.spec, 2 * self.settings.processes)

    @property
    def loss_fell(self) -> bool:
        """Whether the last loss is below the first."""
        return loss_fell(self.whole)

    @property
    def passed(self) -> bool:
        """Whether the demo showed all that it should."""
        return self.on_device and self.loss_fell and self.comparison.exact

    @property
    def simulated(self) -> bool:
        """Whether the processes say that their device was simulated."""
        return is_simulated(self.facts)


def write_summary(verdict: Verdict, path: Path) -> None:
    """Keep the result as JSON."""
    content = {
        "passed": verdict.passed,
        "vendor": verdict.spec.key,
        "simulated": verdict.simulated,
        "on_device": verdict.on_device,
        "facts": [dict(fact) for fact in verdict.facts],
        "loss_fell": verdict.loss_fell,
        "losses": [finite_or_none(step.loss) for step in verdict.whole],
        "held_out_loss": finite_or_none(verdict.whole[-1].held_out_loss) if verdict.whole else None,
        "resume_exact": verdict.comparison.exact,
        "replayed_steps": list(verdict.comparison.replayed),
        "differences": list(verdict.comparison.differences),
        "seconds": round(verdict.seconds, 1),
    }
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def print_summary(verdict: Verdict, console: Console) -> None:
    """Print the result as a short table."""
    rows: list[Row] = [
        ("on the device", verdict.on_device, describe_stack(verdict.facts, 2 * verdict.settings.processes)),
        ("loss fell", verdict.loss_fell, _losses(verdict.whole)),
        ("resume exact", verdict.comparison.exact, _resume(verdict)),
        ("time", None, f"{verdict.seconds:.0f} s"),
    ]
    print_table(f"verl SFT on {verdict.spec.display_name}", rows, console)
    console.print(f"Outputs: {escape(str(verdict.outputs))}", soft_wrap=True, highlight=False)
    for line in verdict.comparison.differences[:_MOST_DIFFERENCES]:
        console.print(f"  {escape(line)}", style="red", highlight=False)
    if verdict.simulated:
        print_simulated(verdict.spec, console)


def _losses(whole: Sequence[Step]) -> str:
    if not whole:
        return "no step was logged"
    losses = [step.loss for step in whole]
    line = f"from {losses[0]:.4f} to {losses[-1]:.4f} in {whole[-1].number} steps"
    held_out = whole[-1].held_out_loss
    line += "" if held_out is None else f", held-out {held_out:.4f}"
    finite = all(loss == loss for loss in losses)
    return f"{line}  {sparkline(losses)}" if finite else line


def _resume(verdict: Verdict) -> str:
    replayed = verdict.comparison.replayed
    if not replayed:
        return "no step was replayed"
    span = f"steps {replayed[0]} to {replayed[-1]}"
    if verdict.comparison.exact:
        return f"{span} replayed from the checkpoint with equal losses and gradient norms, digit for digit"
    return f"{span} replayed, {len(verdict.comparison.differences)} numbers differ"
