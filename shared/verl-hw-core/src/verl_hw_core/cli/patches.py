# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw patches``: what is replaced in transformers' models on each vendor's chip."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from verl_hw_core.cli.outcome import reported

if TYPE_CHECKING:
    from verl_hw_core.model_patches.listing import Row

SCHEMA = 1
"""Version of the JSON form: raised when a name in it changes its meaning or goes."""


def patches(
    vendor: Annotated[str | None, typer.Option("--vendor", help="This vendor only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show which parts of transformers' models are replaced, by what, and what is known of vendors' kernels."""
    with reported():
        from verl_hw_core.installed import find_wheel, installed_wheels
        from verl_hw_core.model_patches.listing import rows

        wheels = installed_wheels()
        wheels = wheels if vendor is None else (find_wheel(vendor, wheels),)
        found = [row for wheel in wheels if wheel.spec is not None for row in rows(wheel.spec.key)]
        if as_json:
            import json
            from dataclasses import asdict

            typer.echo(json.dumps({"schema": SCHEMA, "patches": [asdict(row) for row in found]}, indent=2))
        else:
            _show(found)


def _show(found: "Sequence[Row]") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not found:
        console.print("No vendor wheel is installed: pip install verl-hw-<vendor>", markup=False, soft_wrap=True)
        return
    for vendor in dict.fromkeys(row.vendor for row in found):
        table = Table(title=vendor, title_justify="left", box=None, pad_edge=False)
        for heading in ("model type", "target", "kind", "kernel", "in force"):
            table.add_column(heading, overflow="fold")
        for row in found:
            if row.vendor == vendor:
                table.add_row(row.model_type, row.target, row.kind, row.kernel, row.in_force)
        console.print(table)
    console.print(
        "A training process checks a fused kernel's gradients on its device first, and logs the result; where none is "
        "in force, transformers' own code runs.",
        soft_wrap=True,
    )
