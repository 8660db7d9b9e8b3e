# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw demo``: train a tiny model with verl's own trainer on a vendor's simulated or real device."""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verl_hw_core.cli.outcome import FAILED, reported

if TYPE_CHECKING:
    from verl_hw_core.hardware import HardwareSpec

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


class Strategy(str, Enum):
    """verl's sharding strategies that the demo can use."""

    FSDP = "fsdp"
    FSDP2 = "fsdp2"


@app.callback()
def demo(
    context: typer.Context,
    vendor: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Vendor to show; needed when several vendor wheels are installed."),
    ] = None,
    steps: Annotated[
        int, typer.Option(min=4, max=300, metavar="N", help="Training steps; the checkpoint is in the middle.")
    ] = 20,
    nproc: Annotated[int, typer.Option(min=1, max=8, metavar="N", help="Training processes, one device each.")] = 2,
    strategy: Annotated[Strategy, typer.Option(help="verl's sharding strategy.")] = Strategy.FSDP2,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of data, weights and order.")] = 0,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Output folder.", show_default="a fresh ./outputs/demo-<vendor>")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep model, data and checkpoints too.")] = False,
    real: Annotated[bool, typer.Option("--real", help="Use the vendor's hardware, not a simulated device.")] = False,
) -> None:
    """Run verl's SFT trainer on a device: loss per step, a checkpoint, an exact resume.

    The device is simulated on the CPU unless --real is given; it is compiled the first time. Takes about a minute.
    Nothing is downloaded.
    """
    if context.invoked_subcommand is not None:
        return
    with reported():
        from rich.console import Console

        from verl_hw_core.demo.sft import SftDemo, run_sft_demo
        from verl_hw_core.demo.sft_config import SftSettings

        spec = _choose(vendor)
        if real:
            _require_hardware(spec)
        settings = SftSettings(steps=steps, processes=nproc, strategy=strategy.value, seed=seed)
        wish = SftDemo(spec=spec, settings=settings, output=output, real=real, keep=keep)
        passed = run_sft_demo(wish, Console()).passed
    if not passed:
        raise typer.Exit(FAILED)


def _choose(vendor: str | None) -> "HardwareSpec":
    """Return the facts of the vendor asked for, or of the only one that is installed."""
    from verl_hw_core.errors import UnknownVendorError
    from verl_hw_core.installed import find_wheel, installed_wheels

    wheels = installed_wheels()
    if vendor is None and len(wheels) > 1:
        names = ", ".join(wheel.name for wheel in wheels)
        raise UnknownVendorError(f"several vendor wheels are installed, choose one with --vendor: {names}")
    if vendor is None and wheels:
        vendor = wheels[0].name
    return find_wheel(vendor or "any", wheels).facts


def _require_hardware(spec: "HardwareSpec") -> None:
    from verl_hw_core.detection import Verdict, explain, survey
    from verl_hw_core.errors import NoHardwareError

    finding = survey([spec], thorough=True).findings[spec.key]
    # "Unknown" is not "no": the training processes will tell.
    if finding.verdict is Verdict.ABSENT:
        raise NoHardwareError(
            f"--real needs {spec.display_name}, which was not found here; leave --real out for a simulated device.\n"
            f"{explain(finding)}"
        )
