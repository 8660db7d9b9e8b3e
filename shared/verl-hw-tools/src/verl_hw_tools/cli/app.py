# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of ``verl-hw``. Each has a file here that imports what it runs only when it runs."""

from typing import Annotated

import typer

from verl_hw_tools.cli import accept, check, check_model, demo, detect, doctor, env, ledger, new, patches

# Plain help and errors: rich help alone would take longer than everything else that --help does.
app = typer.Typer(
    name="verl-hw",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(demo.app, name="demo")
app.add_typer(patches.app, name="patches")
app.command("env")(env.env)
app.command("doctor")(doctor.doctor)
app.command("detect")(detect.detect)
app.command("check")(check.check)
app.command("check-model")(check_model.check_model)
app.command("accept")(accept.accept)
app.command("ledger")(ledger.ledger)
app.command("new")(new.new)


def _print_version(wanted: bool) -> None:
    if wanted:
        from verl_hw_tools.cli.version import version_lines

        typer.echo("\n".join(version_lines()))
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the versions that are installed and exit."
        ),
    ] = False,
) -> None:
    """Run verl on accelerators other than NVIDIA's: see what is installed, try it, check it."""
