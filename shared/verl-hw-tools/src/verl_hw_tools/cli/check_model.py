# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw check-model``: is a model the same for the Megatron backend as for Hugging Face?"""

from pathlib import Path
from typing import Annotated

import typer

from verl_hw_tools.cli.demo_vendor import demo_vendor, require_hardware
from verl_hw_tools.cli.outcome import FAILED, reported


def check_model(
    model: Annotated[Path, typer.Argument(metavar="PATH", help="Folder with the model's config.json.")],
    vendor: Annotated[
        str | None, typer.Option(metavar="NAME", help="Vendor; needed when several vendor wheels are installed.")
    ] = None,
    real: Annotated[bool, typer.Option("--real", help="Use the vendor's hardware, not a simulated device.")] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option("--import", metavar="MODULE", help="Import this first: it registers the model. May be repeated."),
    ] = None,
    full_size: Annotated[bool, typer.Option("--full-size", help="Do not make the model smaller first.")] = False,
    tolerance: Annotated[
        float,
        typer.Option(min=1e-8, max=1.0, metavar="X", help="Largest difference, relative to a tensor's largest value."),
    ] = 1e-4,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="transformers may run code from PATH.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Build a model of the config in PATH, small and with random weights, in Megatron and in transformers, and compare.

    Compared are norm settings, the weight mapping and its round trip, logits and gradients of packed and padded
    batches, and the same of a critic. Exit code 0: the same model; 1: a comparison failed; 2: nothing to compare.
    """
    with reported():
        from rich.console import Console

        from verl_hw_tools.model_check.runner import Settings, run
        from verl_hw_tools.model_check.show import show_report

        spec = demo_vendor(vendor)
        if real:
            require_hardware(spec)
        settings = Settings(
            spec=spec,
            model=model,
            real=real,
            modules=tuple(modules or ()),
            full_size=full_size,
            tolerance=tolerance,
            trust_remote_code=trust_remote_code,
        )
        report = run(settings, Console(stderr=True, quiet=as_json))
        if as_json:
            import json

            typer.echo(json.dumps(report.as_data(), indent=2))
        else:
            show_report(report, Console())
    if not report.passed:
        raise typer.Exit(FAILED)
