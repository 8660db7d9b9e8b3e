# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw doctor``: what is wrong here for verl, why it matters and what to type."""

from typing import TYPE_CHECKING, Annotated

import typer

from verl_hw_tools.cli.outcome import CANNOT_RUN, FAILED, own_faults, reported
from verl_hw_tools.cli.own_output import others_print_elsewhere

if TYPE_CHECKING:
    from verl_hw_tools.doctor.runner import Settings


def doctor(
    vendor: Annotated[
        str | None, typer.Option(metavar="NAME", help="Vendor to judge; otherwise the one that verl would use.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for a warning too.")] = False,
    list_checks: Annotated[bool, typer.Option("--list", help="Show the checks and run none.")] = False,
    check: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this check, or this group. May be repeated.")
    ] = None,
    deadline: Annotated[
        float, typer.Option(min=1.0, max=3600.0, metavar="S", help="Seconds that a step of a child process may take.")
    ] = 120.0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the evidence of every check.")] = False,
) -> None:
    """Say what is wrong with this installation, why it matters and what to type.

    Whatever touches torch, verl or a vendor's runtime runs in a child process: a hang or a crash there is a result.
    Exit code 0: fine, or warnings only; 1: a check failed; 2: the doctor could not run or a check of its own broke.
    """
    with reported():
        from verl_hw_tools.doctor.runner import Settings, examine

        settings = Settings(vendor=vendor, only=tuple(check or ()), deadline=deadline)
        if list_checks:
            _list(settings, as_json)
            return
        with own_faults("doctor"), others_print_elsewhere():
            report = examine(settings)
        if as_json:
            import json

            typer.echo(json.dumps(report.as_data(strict=strict), indent=2))
        else:
            from rich.console import Console

            from verl_hw_tools.doctor.show import show_report

            show_report(report, Console(highlight=False), verbose=verbose)
    if report.broken:
        raise typer.Exit(CANNOT_RUN)
    if not report.passed(strict=strict):
        raise typer.Exit(FAILED)


def _list(settings: "Settings", as_json: bool) -> None:
    from verl_hw_tools.doctor.runner import list_checks

    with own_faults("doctor"), others_print_elsewhere():
        found = list_checks(settings)
    if as_json:
        import json

        rows = [{"id": one.id, "title": one.title, "why": one.why, "doc": one.doc} for one in found]
        typer.echo(json.dumps(rows, indent=2))
        return
    for one in found:
        typer.echo(f"{one.id:<25}{one.title}")
