# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw accept``: judge a training run from what verl logged."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verl_hw_tools.cli.outcome import FAILED, reported
from verl_hw_tools.errors import OutputFolderError

if TYPE_CHECKING:
    from verl_hw_tools.acceptance.judge import Verdict
    from verl_hw_tools.acceptance.thresholds import Thresholds


def accept(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Console log, JSON lines of the file logger, TensorBoard event file or folder, or CSV export.",
        ),
    ],
    reference: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="A good run of the same recipe. May be repeated, for several seeds."),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML file.")] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write the plots as PNG, a file or a folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    steps: Annotated[
        int | None, typer.Option(min=10, metavar="N", help="Judge the first N steps.", show_default="100")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Epochs that the run was to have.")] = None,
    total_steps: Annotated[int | None, typer.Option(min=1, metavar="N", help="Steps that the run was to have.")] = None,
    resumed: Annotated[
        bool, typer.Option("--resumed", help="The run was resumed: of steps logged twice the later ones count.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="No verdict when one of the stated criteria cannot be judged.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a threshold. May be repeated; see --html for all."),
    ] = None,
    thresholds: Annotated[Path | None, typer.Option(metavar="FILE", help="Thresholds from a TOML file.")] = None,
) -> None:
    """Judge a GRPO or PPO run: does the reward rise, early and for good, and is the run like the reference?

    Exit code 0: accepted; 1: rejected; 2: it cannot be judged, and the message says why. Needs verl-hw-tools[accept].
    """
    with reported():
        _refuse_overwriting({"--html": html, "--png": png}, [run, *(reference or [])])
        limits = _limits(steps, set_ or [], thresholds)
        verdict = _judge(run, reference or [], limits, (total_steps, epochs), (resumed, strict))
        _write(verdict, html, png)
        if as_json:
            import json

            typer.echo(json.dumps(verdict.as_data(), indent=2, allow_nan=False))
        else:
            from rich.console import Console

            from verl_hw_tools.acceptance.table import show

            show(verdict, Console(highlight=False))
    if not verdict.accepted:
        raise typer.Exit(FAILED)


def _refuse_overwriting(outputs: dict[str, Path | None], logs: list[Path]) -> None:
    for option, path in outputs.items():
        if path is not None and path.is_file() and any(log.exists() and log.samefile(path) for log in logs):
            raise OutputFolderError(
                f"{option} {path} is one of the logs to be judged: name another file for the report"
            )


def _limits(steps: int | None, words: list[str], file: Path | None) -> "Thresholds":
    from verl_hw_tools.acceptance.thresholds import Thresholds, from_file, from_words

    # The command line wins over the file.
    values = {**(from_file(file) if file else {}), **from_words(words)}
    return Thresholds().changed({**values, "steps": steps} if steps is not None else values)


def _judge(
    run: Path,
    references: list[Path],
    limits: "Thresholds",
    planned: tuple[int | None, int | None],
    switches: tuple[bool, bool],
) -> "Verdict":
    from verl_hw_tools.acceptance.completion import Plan
    from verl_hw_tools.acceptance.judge import judge
    from verl_hw_tools.acceptance.readers import read_run

    resumed, strict = switches
    return judge(
        read_run(run, resumed=resumed),
        [read_run(reference, resumed=resumed) for reference in references],
        limits,
        Plan(steps=planned[0], epochs=planned[1]),
        strict=strict,
    )


def _write(verdict: "Verdict", html: Path | None, png: Path | None) -> None:
    if html is not None:
        from verl_hw_tools.acceptance.page import write_page

        write_page(verdict, html)
        typer.echo(f"report: {html}", err=True)
    if png is not None:
        from verl_hw_tools.acceptance.plots import write_png

        typer.echo(f"plots: {write_png(verdict, png)}", err=True)
