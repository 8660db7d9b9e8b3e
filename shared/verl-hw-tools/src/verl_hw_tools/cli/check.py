# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw check``: run the conformance suite on this machine's devices, or on simulated ones."""

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verl_hw_core.errors import VerlHwError
from verl_hw_tools.cli.outcome import FAILED, reported
from verl_hw_tools.errors import CheckSuiteError

if TYPE_CHECKING:
    from verl_hw_tools.conformance.results import Report
    from verl_hw_tools.conformance.runner import Settings


def check(
    vendor: Annotated[
        str | None, typer.Option(metavar="NAME", help="Vendor to check; otherwise the one that detection chooses.")
    ] = None,
    nproc: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=64,
            metavar="N",
            help="Processes, one device each, of the checks that need several.",
            show_default="one a device, at most 4",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this group, or the checks whose id begins so. May be repeated."),
    ] = None,
    list_checks: Annotated[bool, typer.Option("--list", help="Show the checks and run none.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results as JUnit XML too.", dir_okay=False)
    ] = None,
    deadline: Annotated[
        float, typer.Option(min=1.0, max=3600.0, metavar="S", help="Seconds that a single check may take.")
    ] = 120.0,
) -> None:
    """Check that the devices do what verl needs: operators, collectives, random state, sharded training and more.

    Set VERL_HW_SIM=<vendor>:4 to check simulated devices. Exit code 0: no check failed; 1: one failed or crashed;
    2: the suite could not run.
    """
    with reported():
        from verl_hw_tools.conformance.runner import Settings

        settings = Settings(vendor=vendor, processes=nproc, only=tuple(only or ()), deadline=deadline)
        if list_checks:
            _list(settings, as_json)
            return
        report = _run(settings, as_json)
        if junit is not None:
            _write_junit(report, junit)
        if as_json:
            import json

            typer.echo(json.dumps(report.as_data(), indent=2))
        else:
            from rich.console import Console

            from verl_hw_tools.conformance.show import show_report

            show_report(report, Console())
    if not report.passed:
        raise typer.Exit(FAILED)


def _run(settings: "Settings", quiet: bool) -> "Report":
    from rich.console import Console

    from verl_hw_tools.conformance.runner import run
    from verl_hw_tools.conformance.show import BarProgress

    # The bar goes to stderr: stdout is for the result alone.
    with BarProgress(Console(stderr=True, quiet=quiet)) as progress:
        try:
            return run(settings, progress)
        except VerlHwError:
            raise
        except Exception as error:
            # Exit code 1 says something about the device; a fault of ours must not look like it.
            traceback.print_exc()
            raise CheckSuiteError(f"the suite itself broke, with the error above ({type(error).__name__})") from error


def _list(settings: "Settings", as_json: bool) -> None:
    from dataclasses import asdict

    from verl_hw_tools.conformance.runner import list_checks

    checks = list_checks(settings)
    if as_json:
        import json

        typer.echo(json.dumps([{**asdict(check), "group": check.group} for check in checks], indent=2))
        return
    for check in checks:
        needs = f" [{check.processes} processes]" if check.processes > 1 else ""
        typer.echo(f"{check.id:<44} {check.title}{needs}")


def _write_junit(report: "Report", path: Path) -> None:
    from verl_hw_tools.conformance.junit import junit_xml
    from verl_hw_tools.errors import OutputFolderError

    try:
        path.write_text(junit_xml(report), encoding="utf-8")
    except OSError as error:
        raise OutputFolderError(f"--junit {path} cannot be written: {error.strerror or error}") from error
