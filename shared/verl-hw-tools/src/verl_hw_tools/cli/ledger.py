# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw ledger``: where verl-hw changes, or reaches into, verl and torch, and whether it fits what is installed.

``verl-hw patches upstream`` shows the same; its option ``--verl`` judges the rows against another verl.
"""

from typing import Annotated

import typer

from verl_hw_tools.cli.outcome import reported

SCHEMA = 1
"""Version of the JSON form: raised when a name in it changes its meaning or goes."""


def ledger(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show every place where verl-hw changes or reaches into verl and torch, why, and until when.

    All of it happens in processes that train on a chosen vendor's device, except the platform and engine tables, which
    are touched while verl is imported.
    """
    with reported():
        if as_json:
            import json
            from dataclasses import asdict

            from verl_hw_core.upstream import LEDGER
            from verl_hw_core.upstream.installed_state import requirements, state
            from verl_hw_core.upstream.patches import declared

            rows = [
                {
                    **asdict(row),
                    "targets": declared(row.id),
                    "target": (*declared(row.id), *row.reads)[0],
                    "versions": ", ".join(requirements(row)),
                    "installed": state(row),
                }
                for row in LEDGER
            ]
            typer.echo(json.dumps({"schema": SCHEMA, "rows": rows}, indent=2))
        else:
            _show()


def _show() -> None:
    from rich.console import Console
    from rich.table import Table

    from verl_hw_core.upstream import LEDGER
    from verl_hw_core.upstream.installed_state import state
    from verl_hw_core.upstream.patches import declared

    table = Table(box=None, pad_edge=False)
    for heading in ("row", "names", "why", "without it", "until", "installed"):
        table.add_column(heading, overflow="fold")
    for row in LEDGER:
        names = "\n".join((*declared(row.id), *(f"{name} (read)" for name in row.reads)))
        until = f"{row.removal} {row.link}"
        if row.hook:
            until += f" With {row.hook.rpartition('.')[2]}: {row.with_hook}"
        table.add_row(row.id, names, row.reason, f"{row.lost} ({row.if_missing})", until, state(row), end_section=True)
    Console(highlight=False, markup=False).print(table)
