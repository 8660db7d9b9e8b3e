# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw detect``: what detection finds on this machine for every installed vendor wheel, and why."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from verl_hw_tools.cli.outcome import reported

if TYPE_CHECKING:
    from rich.table import Table

    from verl_hw_core.detection import Survey, VendorFinding
    from verl_hw_tools.choice import Choice
    from verl_hw_tools.installed import InstalledWheel

SCHEMA = 1
"""Version of the JSON form: raised when a name in it changes its meaning or goes."""

_COLOURS = {"present": "green", "unknown": "yellow", "absent": "dim"}


def detect(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show which vendor's hardware is on this machine, with the evidence, and which one verl would use."""
    with reported():
        from verl_hw_core.detection import survey
        from verl_hw_tools.choice import choose, relevant_variables
        from verl_hw_tools.installed import installed_wheels

        wheels = installed_wheels()
        found = survey([wheel.spec for wheel in wheels if wheel.spec is not None], thorough=True)
        choice = choose(wheels)
        if as_json:
            import json

            typer.echo(json.dumps(_as_data(wheels, found, choice, relevant_variables()), indent=2))
        else:
            _show(wheels, found, choice, relevant_variables())


def _as_data(
    wheels: "tuple[InstalledWheel, ...]", found: "Survey", choice: "Choice", variables: dict[str, str]
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "chosen": choice.vendor,
        "because": choice.because,
        "variables": variables,
        "conflict": list(found.conflict),
        "seconds": round(found.seconds, 3),
        "vendors": [_wheel_as_data(wheel, _finding(wheel, found)) for wheel in wheels],
    }


def _wheel_as_data(wheel: "InstalledWheel", finding: "VendorFinding | None") -> dict[str, Any]:
    return {
        "vendor": wheel.spec.key if wheel.spec is not None else wheel.name,
        "distribution": wheel.distribution,
        "version": wheel.version,
        "problem": wheel.problem,
        "verdict": None if finding is None else finding.verdict.value,
        "evidence": [
            {
                "kind": item.kind,
                "verdict": item.verdict.value,
                "decides": item.decides,
                "why": item.why,
                "seconds": round(item.seconds, 4),
            }
            for item in (() if finding is None else finding.evidence)
        ],
    }


def _show(wheels: "tuple[InstalledWheel, ...]", found: "Survey", choice: "Choice", variables: dict[str, str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if not wheels:
        console.print("No vendor wheel is installed: pip install verl-hw-<vendor>", markup=False, soft_wrap=True)
    for wheel in wheels:
        heading = Text(f"{wheel.distribution} {wheel.version}", style="bold")
        finding = _finding(wheel, found)
        if finding is None:
            console.print(heading.append(f"  broken: {wheel.problem}", style="red"), soft_wrap=True)
            continue
        verdict = finding.verdict.value
        console.print(heading.append(f"  {finding.spec_key}: {verdict}", style=_COLOURS[verdict]), soft_wrap=True)
        console.print(_evidence_table(finding))
    for name, value in variables.items():
        console.print(f"{name}={value} is set", markup=False, soft_wrap=True)
    chosen = choice.vendor or "none of these vendors"
    console.print(Text.assemble("verl would use: ", (chosen, "bold")), soft_wrap=True)
    console.print(f"  because: {choice.because}", markup=False, soft_wrap=True)


def _evidence_table(finding: "VendorFinding") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for item in finding.evidence:
        verdict = item.verdict.value
        hint = "" if item.decides else " (a hint, decides nothing)"
        name = item.kind.removesuffix("_hint").replace("_", " ")
        table.add_row(f"  {name}", Text(verdict, style=_COLOURS[verdict]), Text(item.why + hint))
    if not finding.evidence:
        table.add_row("  nothing to look for: the wheel names no traces")
    return table


def _finding(wheel: "InstalledWheel", found: "Survey") -> "VendorFinding | None":
    return None if wheel.spec is None else found.findings[wheel.spec.key]
