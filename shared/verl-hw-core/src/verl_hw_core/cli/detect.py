# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw detect``: what detection finds on this machine for every installed vendor wheel, and why."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from verl_hw_core.cli.outcome import FAILED, reported

if TYPE_CHECKING:
    from verl_hw_core.detection import Survey
    from verl_hw_core.installed import InstalledWheel


def detect(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show which installed vendor's hardware is on this machine, with the evidence. Exit code 1 when none is."""
    with reported():
        from verl_hw_core.detection import survey
        from verl_hw_core.installed import installed_wheels

        wheels = installed_wheels()
        found = survey([wheel.spec for wheel in wheels if wheel.spec is not None], thorough=True)
        if as_json:
            import json

            typer.echo(json.dumps(_as_data(wheels, found), indent=2))
        else:
            typer.echo("\n".join(_as_lines(wheels, found)))
    if found.chosen is None:
        raise typer.Exit(FAILED)


def _as_data(wheels: "tuple[InstalledWheel, ...]", found: "Survey") -> dict[str, Any]:
    vendors = []
    for wheel in wheels:
        finding = found.findings.get(wheel.spec.key) if wheel.spec is not None else None
        vendors.append(
            {
                "vendor": wheel.spec.key if wheel.spec is not None else wheel.name,
                "distribution": wheel.distribution,
                "version": wheel.version,
                "problem": wheel.problem,
                "verdict": None if finding is None else finding.verdict.value,
                "evidence": [
                    {"kind": item.kind, "verdict": item.verdict.value, "why": item.why}
                    for item in (() if finding is None else finding.evidence)
                ],
            }
        )
    return {
        "chosen": found.chosen,
        "conflict": list(found.conflict),
        "seconds": round(found.seconds, 3),
        "vendors": vendors,
    }


def _as_lines(wheels: "tuple[InstalledWheel, ...]", found: "Survey") -> list[str]:
    from verl_hw_core.detection import explain

    lines = []
    for wheel in wheels:
        lines.append(
            f"{wheel.distribution} {wheel.version}" + (f" is broken: {wheel.problem}" if wheel.problem else "")
        )
        if wheel.spec is not None:
            lines += [f"  {line}" for line in explain(found.findings[wheel.spec.key]).splitlines()]
    if not wheels:
        lines.append("No vendor wheel is installed: pip install verl-hw-<vendor>")
    elif found.chosen is None:
        lines.append("verl would use none of these vendors: no hardware of theirs was found")
    else:
        lines.append(f"verl would use: {found.chosen}")
    if found.conflict:
        lines.append(found.conflict_message())
    return lines
