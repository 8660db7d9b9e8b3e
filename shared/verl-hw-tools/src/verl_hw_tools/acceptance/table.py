# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The verdict on a terminal: first the verdict, then the criteria, the failed ones with what they mean."""

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from verl_hw_tools.acceptance.criterion import Criterion, Status
from verl_hw_tools.acceptance.judge import Verdict

_MARKS = {
    Status.PASSED: "[green]pass[/]",
    Status.FAILED: "[bold red]FAIL[/]",
    Status.NOT_JUDGED: "[dim]not judged[/]",
}


def show(verdict: Verdict, console: Console) -> None:
    """Print the verdict."""
    colour = "green" if verdict.accepted else "red"
    console.print(Panel(f"[bold {colour}]{escape(verdict.headline)}[/]\n{_about(verdict)}", border_style=colour))
    for meaning, titles in _failures(verdict).items():
        console.print(f"[bold red]FAIL[/] [bold]{escape('; '.join(titles))}[/]: {escape(meaning)}")
    if not verdict.accepted:
        console.print()
    console.print(_table("What the field asks for", [one for one in verdict.criteria if one.stated]))
    console.print()
    others = [one for one in verdict.criteria if not one.stated]
    if others:
        console.print(_table("What a good reward can hide", others))
    for note in verdict.notes:
        console.print(f"[yellow]note[/] {escape(note)}")


def _failures(verdict: Verdict) -> dict[str, list[str]]:
    """Group what failed by what it means, to say it once."""
    grouped: dict[str, list[str]] = {}
    for criterion in verdict.of(Status.FAILED):
        grouped.setdefault(criterion.meaning, []).append(criterion.title)
    return grouped


def _about(verdict: Verdict) -> str:
    run = verdict.run
    lines = [f"run        {run.source} ({run.format}, {run.last_step} steps)"]
    lines += [f"reference  {one.source} ({one.format}, {one.last_step} steps)" for one in verdict.references]
    return escape("\n".join(lines))


def _table(title: str, criteria: list[Criterion]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for heading in ("criterion", "found", "wanted"):
        table.add_column(heading, overflow="fold")
    for one in criteria:
        # Of what was not judged, the reason stands where the number would.
        found = one.meaning if one.status is Status.NOT_JUDGED else one.found
        style = "dim" if one.status is Status.NOT_JUDGED else None
        table.add_row(_MARKS[one.status], escape(one.title), escape(found), escape(one.wanted), style=style)
    return table
