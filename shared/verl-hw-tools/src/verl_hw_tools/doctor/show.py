# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The doctor's report on a terminal: the verdict first, then the problems with what to type, then everything else."""

import textwrap

from rich.console import Console
from rich.text import Text

from verl_hw_tools.conformance.results import Status
from verl_hw_tools.doctor.model import Report, Result, worst_first

STYLES = {
    Status.OK: "green",
    Status.SKIP: "dim",
    Status.WARN: "yellow",
    Status.FAIL: "bold red",
    Status.CRASH: "bold magenta",
}
_LABEL = 10
_NARROWEST = 40


def show_report(report: Report, console: Console, *, verbose: bool) -> None:
    """Print a report for people.

    Args:
        report: The report.
        console: Where to.
        verbose: Show the details of every check: tracebacks, the evidence, the engine matrix.
    """
    _wrapped(console, report.summary)
    counts = ", ".join(f"{report.count(status)} {status.value}" for status in Status if report.count(status))
    console.print(Text(f"{len(report.results)} checks: {counts} ({report.seconds:.1f} s)"))
    problems = worst_first(report.results)
    for result in problems:
        console.print()
        _show_problem(result, console)
    if not problems:
        console.print(Text("nothing to mend", style="green"))
    console.print()
    for result in report.results:
        if result.status in (Status.OK, Status.SKIP):
            _show_rest(result, console, verbose=verbose)
    if not verbose and any(result.finding.details for result in report.results):
        _wrapped(console, "Evidence, engine matrix and all else: verl-hw doctor --verbose. For a report: verl-hw env")


def _show_problem(result: Result, console: Console) -> None:
    finding = result.finding
    console.print(
        Text.assemble((result.status.value.upper(), STYLES[result.status]), f"  {result.id}: {result.title}"),
        soft_wrap=True,
    )
    for label, text in (("found", finding.observed), ("expected", finding.expected), ("why", result.why)):
        _labelled(console, label, text)
    # One line, however long, so that it can be copied whole.
    console.print(Text.assemble("  ", ("mend".ljust(_LABEL), "bold"), finding.mend), soft_wrap=True)
    _labelled(console, "read", result.doc)
    if finding.details:
        _indented(console, finding.details)


def _show_rest(result: Result, console: Console, *, verbose: bool) -> None:
    width = max(console.width, _NARROWEST)
    head = f"{result.status.value:<6}{result.id:<25}"
    text = " ".join(result.finding.observed.split())
    if not verbose:
        text = textwrap.shorten(text, max(width - len(head), 30), placeholder=" ...")
    lines = textwrap.wrap(text, max(width - len(head), 30)) or [""]
    first = Text.assemble((f"{result.status.value:<6}", STYLES[result.status]), f"{result.id:<25}{lines[0]}")
    console.print(first, soft_wrap=True)
    for line in lines[1:]:
        console.print(Text(" " * len(head) + line), soft_wrap=True)
    if verbose and result.finding.details:
        _indented(console, result.finding.details)


def _labelled(console: Console, label: str, text: str) -> None:
    lines = [
        part
        for line in text.splitlines()
        for part in textwrap.wrap(line, max(console.width, _NARROWEST) - _LABEL - 2) or [""]
    ]
    for number, line in enumerate(lines):
        console.print(Text(f"  {label if number == 0 else '':<{_LABEL}}{line}"), soft_wrap=True)


def _indented(console: Console, text: str) -> None:
    for line in text.splitlines():
        console.print(Text(f"    | {line}", style="dim"), soft_wrap=True)


def _wrapped(console: Console, text: str) -> None:
    console.print(Text("\n".join(textwrap.wrap(text, max(console.width, _NARROWEST)))), soft_wrap=True)
