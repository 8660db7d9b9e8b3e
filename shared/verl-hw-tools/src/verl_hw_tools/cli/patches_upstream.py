# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw patches upstream``: the patch registry; with ``--verl``, whether it fits a verl that is not imported."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verl_hw_tools.cli import ledger
from verl_hw_tools.cli.outcome import FAILED, own_faults, reported

if TYPE_CHECKING:
    from verl_hw_tools.upstream_check.judgement import JudgedName, JudgedRow
    from verl_hw_tools.upstream_check.source import VerlSource

SCHEMA = 1
"""Version of the JSON form of ``--verl``: raised when a name in it changes its meaning or goes."""


def upstream(
    verl: Annotated[
        str | None,
        typer.Option(
            metavar="PATH_OR_VERSION",
            help="Judge every row against this verl, which is read and not imported: a checkout, a folder of installed "
            "packages, a wheel or sdist, or a version, which is fetched if it is not the installed one.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show every place where verl-hw changes or reaches into verl and torch, why, and until when.

    With --verl: does each fit that verl, did a name move to another module, or is it gone, and what happens then. Exit
    code 0: all fit; 1: a name moved or is gone; 2: that verl could not be read.
    """
    if verl is None:
        ledger.ledger(as_json)
        return
    with reported(), own_faults("judgement"):
        from verl_hw_tools.upstream_check.judgement import judge
        from verl_hw_tools.upstream_check.source import find_source, installed_source

        source = find_source(verl)
        judged = judge(source, installed_source())
        if as_json:
            import json

            typer.echo(json.dumps(_data(source, judged), indent=2))
        else:
            _show(source, judged)
    if any(one.consequence for one in judged):
        raise typer.Exit(FAILED)


def _data(source: "VerlSource", judged: "Sequence[JudgedRow]") -> dict[str, Any]:
    rows = [
        {
            "id": one.row.id,
            "verdict": one.verdict.value if one.verdict else None,
            "names": [
                {"name": name.name, "use": name.use, "verdict": name.verdict.value, "found_in": name.found_in}
                for name in one.names
            ],
            "not_judged": one.others,
            "consequence": one.consequence,
            "lost": one.row.lost,
            "only_where": one.row.only_where,
            "hook": one.row.hook if one.has_hook else "",
            "with_hook": one.row.with_hook if one.has_hook else "",
        }
        for one in judged
    ]
    return {"schema": SCHEMA, "verl": source.version, "place": source.place, "rows": rows}


def _show(source: "VerlSource", judged: "Sequence[JudgedRow]") -> None:
    from rich.console import Console
    from rich.table import Table

    ours = [one for one in judged if one.verdict is not None]
    console = Console(highlight=False, markup=False)
    counts = {name: sum(one.verdict.value == name for one in ours if one.verdict) for name in ("fits", "moved", "gone")}
    console.print(
        f"verl {source.version} ({source.place}): of {len(ours)} rows {counts['fits']} fit, {counts['moved']} with a "
        f"name that moved, {counts['gone']} with a name that is gone",
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False)
    for heading in ("row", "verdict", "names", "what happens"):
        table.add_column(heading, overflow="fold")
    for one in ours:
        table.add_row(one.row.id, one.verdict, _names(one.names), _what_happens(one))
    console.print(table)
    rest = ", ".join(one.row.id for one in judged if one.verdict is None)
    console.print(f"Not judged, since they name other packages than verl only: {rest}", soft_wrap=True)


def _names(names: "Sequence[JudgedName]") -> str:
    fit = sum(not name.found_in and name.verdict.value == "fits" for name in names)
    lines = [f"{fit} of {len(names)} there" if fit < len(names) else f"all {len(names)} there"]
    for name in names:
        if name.verdict.value != "fits":
            where = f"now in {', '.join(name.found_in)}" if name.found_in else "gone"
            lines.append(f"{name.name} ({name.use}): {where}")
    return "\n".join(lines)


def _what_happens(one: "JudgedRow") -> str:
    said = []
    if one.consequence:
        where = f", only where: {one.row.only_where}" if one.row.only_where else ""
        said.append(f"{one.consequence}: {one.row.lost}{where}")
    if one.has_hook:
        said.append(f"with the hook {one.row.hook.rpartition('.')[2]}, which it has: {one.row.with_hook}")
    return "\n".join(said)
