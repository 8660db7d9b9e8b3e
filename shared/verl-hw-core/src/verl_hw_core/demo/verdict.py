# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a demo showed: judged from what the training processes wrote, kept as JSON, printed as a table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SQUARE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from verl_hw_core.demo.metrics import Comparison, Step, loss_fell
from verl_hw_core.demo.sft_config import SftSettings
from verl_hw_core.hardware import HardwareSpec

_BARS = "▁▂▃▄▅▆▇█"
_MOST_DIFFERENCES = 4
_FRAME_FROM = 60


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
        device = self.spec.device_name
        wanted = (self.spec.key, device)
        found = [(fact.get("platform"), str(fact.get("parameter_device")).partition(":")[0]) for fact in self.facts]
        return len(found) == 2 * self.settings.processes and all(pair == wanted for pair in found)

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
        return any(fact.get("simulator") for fact in self.facts)


def write_summary(verdict: Verdict, path: Path) -> None:
    """Keep the result as JSON."""
    content = {
        "passed": verdict.passed,
        "vendor": verdict.spec.key,
        "simulated": verdict.simulated,
        "on_device": verdict.on_device,
        "facts": [dict(fact) for fact in verdict.facts],
        "loss_fell": verdict.loss_fell,
        "losses": [step.loss for step in verdict.whole],
        "held_out_loss": verdict.whole[-1].held_out_loss if verdict.whole else None,
        "resume_exact": verdict.comparison.exact,
        "replayed_steps": list(verdict.comparison.replayed),
        "differences": list(verdict.comparison.differences),
        "seconds": round(verdict.seconds, 1),
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def print_summary(verdict: Verdict, console: Console) -> None:
    """Print the result as a short table."""
    # A narrow terminal has no room for a frame.
    frame = SQUARE if console.width >= _FRAME_FROM else None
    console.print(f"[bold]verl SFT on {escape(verdict.spec.display_name)}[/]", soft_wrap=True, highlight=False)
    table = Table(show_header=False, box=frame, padding=(0, 1, 0, 0) if frame is None else (0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("on the device", _mark(verdict.on_device), _device(verdict))
    table.add_row("loss fell", _mark(verdict.loss_fell), _losses(verdict.whole))
    table.add_row("resume exact", _mark(verdict.comparison.exact), _resume(verdict))
    table.add_row("time", "", f"{verdict.seconds:.0f} s")
    console.print(table)
    console.print(f"Outputs: {escape(str(verdict.outputs))}", soft_wrap=True, highlight=False)
    for line in verdict.comparison.differences[:_MOST_DIFFERENCES]:
        console.print(f"  {escape(line)}", style="red", highlight=False)
    if verdict.simulated:
        console.print(
            f"The device was [bold]simulated[/] on this machine's CPU: verl's own code ran, on torch device "
            f"'{verdict.spec.device_name}'. Speed, kernels and numerics of real hardware are not shown.",
            highlight=False,
            soft_wrap=True,
        )


def sparkline(values: Sequence[float]) -> str:
    """Draw values as a row of small bars, at most 40 of them."""
    chosen = values[:: max(1, -(-len(values) // 40))]
    low, high = min(chosen), max(chosen)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in chosen)


def _mark(good: bool) -> str:
    return "[green]yes[/]" if good else "[red]NO[/]"


def _device(verdict: Verdict) -> str:
    platforms = ", ".join(sorted({str(fact.get("platform")) for fact in verdict.facts})) or "unknown"
    devices = ", ".join(sorted({str(fact.get("parameter_device")) for fact in verdict.facts})) or "unknown"
    engines = ", ".join(sorted({str(fact.get("engine")).rpartition(".")[2] for fact in verdict.facts})) or "unknown"
    simulated = " (simulated)" if verdict.simulated else ""
    text = f"platform {platforms}, devices {devices}{simulated}, engine {engines}"
    missing = 2 * verdict.settings.processes - len(verdict.facts)
    return escape(text + (f"; {missing} processes did not say what they ran on" if missing else ""))


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
