# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw patches``: what is replaced in transformers' models on each vendor's chip.

``verl-hw patches upstream`` is about verl, torch and Ray, and in a file of its own.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from verl_hw_tools.cli import patches_upstream
from verl_hw_tools.cli.outcome import reported

if TYPE_CHECKING:
    from rich.table import Table

    from verl_hw_tools.cli.patch_rows import Row

SCHEMA = 1
"""Version of the JSON form: raised when a name in it changes its meaning or goes."""

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)
app.command("upstream")(patches_upstream.upstream)


@app.callback()
def patches(
    context: typer.Context,
    vendor: Annotated[str | None, typer.Option("--vendor", help="This vendor only.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show what is not replaced too, and why.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs, always of everything.")] = False,
) -> None:
    """Show which parts of transformers' models are replaced, and by what; ``upstream``: the same of verl and torch."""
    if context.invoked_subcommand is not None:
        if vendor is not None or show_all or as_json:
            name = context.invoked_subcommand
            raise typer.BadParameter(f"options of {name!r} belong behind its name: verl-hw patches {name} --json")
        return
    with reported():
        from verl_hw_tools.cli.patch_rows import rows
        from verl_hw_tools.installed import find_wheel, installed_wheels

        wheels = installed_wheels()
        wheels = wheels if vendor is None else (find_wheel(vendor, wheels),)
        found = [row for wheel in wheels if wheel.spec is not None for row in rows(wheel.spec.key)]
        if as_json:
            import json
            from dataclasses import asdict

            typer.echo(json.dumps({"schema": SCHEMA, "patches": [asdict(row) for row in found]}, indent=2))
        else:
            _show(found, show_all)


def _show(found: "Sequence[Row]", show_all: bool) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not found:
        console.print("No vendor wheel is installed: pip install verl-hw-<vendor>", markup=False, soft_wrap=True)
        return
    for vendor in dict.fromkeys(row.vendor for row in found):
        every = [row for row in found if row.vendor == vendor]
        replaced = [row for row in every if row.replaced]
        console.print(_summary(vendor, len(replaced), len(every)), markup=False, soft_wrap=True)
        shown = every if show_all else replaced
        if shown:
            console.print(_table(shown))
    console.print(
        "A training process checks a fused kernel's gradients on its device first, and logs the result; where none is "
        "in force, transformers' own code runs."
        + ("" if show_all else " Every place, and why it is not replaced: verl-hw patches --all"),
        soft_wrap=True,
    )


def _summary(vendor: str, replaced: int, places: int) -> str:
    count = f"{replaced} of {places}" if replaced else f"none of {places}"
    return f"{vendor}: {count} places in transformers' models replaced"


def _table(rows: "Sequence[Row]") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("model type", "target", "kind", "kernel", "in force"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(row.model_type, row.target, row.kind, row.kernel, row.in_force)
    return table
