# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The table at the end of a demo: what was judged, whether it is as wanted, and what was seen."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SQUARE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.facts.run_facts import device_of

_BARS = "▁▂▃▄▅▆▇█"
_FRAME_FROM = 60

Row = tuple[str, bool | None, str]
"""What was judged, whether it is as wanted (None where it was only measured), and what was seen."""


def print_table(title: str, rows: Sequence[Row], console: Console) -> None:
    """Print the result."""
    # A narrow terminal has no room for a frame.
    frame = SQUARE if console.width >= _FRAME_FROM else None
    console.print(f"[bold]{escape(title)}[/]", soft_wrap=True, highlight=False)
    table = Table(show_header=False, box=frame, padding=(0, 1, 0, 0) if frame is None else (0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, good, text in rows:
        table.add_row(escape(name), _mark(good), escape(text))
    console.print(table)


def print_simulated(spec: HardwareSpec, console: Console) -> None:
    """Say what a simulated device does not show."""
    console.print(
        f"The device was [bold]simulated[/] on this machine's CPU: verl's own code ran, on torch device "
        f"'{spec.device_name}'. Speed, kernels and numerics of real hardware are not shown.",
        highlight=False,
        soft_wrap=True,
    )


def describe_stack(facts: Sequence[Mapping[str, Any]], wanted: int) -> str:
    """Name what the engines ran on; ``wanted`` is how many should have said it."""
    platforms = ", ".join(sorted({str(fact.get("platform")) for fact in facts})) or "unknown"
    devices = ", ".join(sorted({str(device_of(fact)) for fact in facts})) or "unknown"
    engines = ", ".join(sorted({str(fact.get("engine")).rpartition(".")[2] for fact in facts})) or "unknown"
    cards = cards_of(facts)
    kind = "simulated card" if is_simulated(facts) else "card"
    text = f"platform {platforms}, devices {devices} on {cards} {kind}{'' if cards == 1 else 's'}, engine {engines}"
    missing = wanted - len(facts)
    return text + (f"; {missing} processes did not say what they ran on" if missing else "")


def cards_of(facts: Sequence[Mapping[str, Any]]) -> int:
    """Number of different cards that the engines ran on."""
    return len({fact["card"] for fact in facts if fact.get("card") is not None})


def is_on_device(facts: Sequence[Mapping[str, Any]], spec: HardwareSpec, wanted: int) -> bool:
    """Whether as many engines as wanted said that they ran on the vendor's platform and device."""
    found = [(fact.get("platform"), str(device_of(fact)).partition(":")[0]) for fact in facts]
    return len(found) == wanted and all(pair == (spec.key, spec.device_name) for pair in found)


def is_simulated(facts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the processes say that their device was simulated."""
    return any(fact.get("simulator") for fact in facts)


def sparkline(values: Sequence[float]) -> str:
    """Draw values as a row of small bars, at most 40 of them."""
    chosen = values[:: max(1, -(-len(values) // 40))]
    low, high = min(chosen), max(chosen)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in chosen)


def _mark(good: bool | None) -> str:
    return "" if good is None else "[green]yes[/]" if good else "[red]NO[/]"
