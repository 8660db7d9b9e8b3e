# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The suite on a terminal: a bar while it runs, then a table of the groups and what is wrong."""

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.table import Table

from verl_hw_tools.conformance.progress import Progress
from verl_hw_tools.conformance.results import CheckResult, Report, Status

_STYLES = {
    Status.OK: "green",
    Status.SKIP: "dim",
    Status.WARN: "yellow",
    Status.FAIL: "bold red",
    Status.CRASH: "bold magenta",
}


class BarProgress(Progress):
    """A progress bar; on something that is no terminal, one line for each check that did not pass."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = RichProgress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal or console.quiet,
        )
        self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> "BarProgress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()

    def survey(self) -> None:
        """Say that the devices are looked at."""
        self._bar.update(self._task, description="looking at the devices")

    def begin(self, checks: int) -> None:
        """Set the length of the bar."""
        self._bar.update(self._task, total=checks)

    def check(self, check_id: str) -> None:
        """Show the check that runs."""
        self._bar.update(self._task, description=check_id)

    def result(self, result: CheckResult) -> None:
        """Advance; name a check that failed at once, since the suite takes minutes."""
        self._bar.advance(self._task)
        if result.status.is_bad:
            self._console.print(f"{_tag(result.status)} {escape(result.id)}", highlight=False)


def show_report(report: Report, console: Console) -> None:
    """Print a report for people."""
    console.print(escape(report.machine.summary), highlight=False, soft_wrap=True)
    versions = ", ".join(f"{name} {version}" for name, version in report.machine.versions.items())
    console.print(f"[dim]{escape(versions)}[/dim]", highlight=False, soft_wrap=True)
    console.print(_table(report))
    for status in (Status.SKIP, Status.WARN, Status.FAIL, Status.CRASH):
        for result in report.results:
            if result.status is status:
                _show_result(result, console)
    if report.machine.simulated:
        text = "The devices were simulated: this says nothing about the vendor's hardware."
        console.print(text, highlight=False, soft_wrap=True)
    counts = ", ".join(f"{report.count(status)} {status.value}" for status in Status if report.count(status))
    verdict = "[green]passed[/green]" if report.passed else "[bold red]not passed[/bold red]"
    console.print(f"{verdict}: {counts or 'no checks'}, {report.seconds:.0f} s", highlight=False)


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("group")
    for status in Status:
        table.add_column(status.value, justify="right")
    table.add_column("seconds", justify="right")
    for group in dict.fromkeys(result.group for result in report.results):
        members = [result for result in report.results if result.group == group]
        counts = [sum(result.status is status for result in members) for status in Status]
        cells = [f"[{_STYLES[s]}]{n}[/]" if n else "[dim]-[/dim]" for s, n in zip(Status, counts, strict=True)]
        table.add_row(group, *cells, f"{sum(result.seconds for result in members):.1f}")
    return table


def _show_result(result: CheckResult, console: Console) -> None:
    head = f"{_tag(result.status)} [bold]{escape(result.id)}[/bold]: {escape(result.title)}"
    console.print(head, highlight=False, soft_wrap=True)
    ranks = f"rank {', '.join(map(str, result.ranks))}: " if result.ranks else ""
    rows = [("", result.observed)] if result.status is Status.SKIP else [("found", ranks + result.observed)]
    if result.status is not Status.SKIP:
        rows += [("expected", result.expected), ("blocks", result.blocks)]
    for label, text in rows:
        if text:
            name = f"{label + ':':<10}" if label else ""
            indented = text.replace("\n", "\n" + " " * 16)
            console.print(f"      {name}{escape(indented)}", highlight=False, soft_wrap=True)


def _tag(status: Status) -> str:
    return f"[{_STYLES[status]}]{status.value:<5}[/]"
