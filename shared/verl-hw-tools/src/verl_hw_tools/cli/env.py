# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw env``: facts for a bug report."""

from typing import Annotated

import typer

from verl_hw_tools.cli.outcome import own_faults, reported
from verl_hw_tools.cli.own_output import others_print_elsewhere


def env(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Print what a bug report needs, ready to be pasted into an issue.

    Secrets and the names of user, home, host and addresses are left out. Works without torch and without verl.
    """
    with reported():
        from verl_hw_tools.doctor.bug_report import collect
        from verl_hw_tools.doctor.markdown import as_markdown

        with own_faults("bug report"), others_print_elsewhere():
            found = collect()
        if as_json:
            import json

            typer.echo(json.dumps(found, indent=2))
        else:
            typer.echo(as_markdown(found), nl=False)
