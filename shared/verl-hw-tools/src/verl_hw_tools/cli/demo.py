# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw demo``: train a tiny model with verl's own trainers on a vendor's simulated or real device."""

from pathlib import Path
from typing import Annotated

import typer

from verl_hw_tools.cli import demo_rl
from verl_hw_tools.cli.demo_strategy import Engine, Strategy
from verl_hw_tools.cli.demo_vendor import demo_vendor, require_hardware
from verl_hw_tools.cli.outcome import FAILED, reported

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


Vendor = Annotated[
    str | None, typer.Option(metavar="NAME", help="Vendor to show; needed when several vendor wheels are installed.")
]
Steps = Annotated[
    int, typer.Option(min=4, max=300, metavar="N", help="Training steps; the checkpoint is in the middle.")
]
Processes = Annotated[int, typer.Option(min=1, max=8, metavar="N", help="Training processes, one device each.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of data, weights and order.")]
Output = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Output folder.", show_default="a fresh ./outputs/demo-<vendor>")
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep model, data and checkpoints too.")]
Real = Annotated[bool, typer.Option("--real", help="Use the vendor's hardware, not a simulated device.")]


@app.callback()
def demo(
    context: typer.Context,
    vendor: Vendor = None,
    steps: Steps = 20,
    nproc: Processes = 2,
    strategy: Engine = Strategy.FSDP2,
    seed: Seed = 0,
    output: Output = None,
    keep: Keep = False,
    real: Real = False,
) -> None:
    """Show verl on a device: ``grpo`` or ``ppo`` (RL on Ray), or, without a name, SFT.

    Without a name, and as ``sft``: verl's SFT trainer, loss per step, a checkpoint, an exact resume; about a minute.
    The device is simulated on the CPU unless --real is given; it is compiled the first time. Nothing is downloaded.
    """
    if context.invoked_subcommand is None:
        sft(vendor, steps, nproc, strategy, seed, output, keep, real)
        return
    given = [name for name in context.params if str(context.get_parameter_source(name)) != "ParameterSource.DEFAULT"]
    if given:
        name = context.invoked_subcommand
        raise typer.BadParameter(f"options of {name!r} belong behind its name: verl-hw demo {name} --{given[0]} ...")


@app.command("sft")
def sft(
    vendor: Vendor = None,
    steps: Steps = 20,
    nproc: Processes = 2,
    strategy: Engine = Strategy.FSDP2,
    seed: Seed = 0,
    output: Output = None,
    keep: Keep = False,
    real: Real = False,
) -> None:
    """Run verl's SFT trainer under torchrun: loss per step, a checkpoint, an exact resume."""
    with reported():
        from rich.console import Console

        from verl_hw_tools.demo.sft import SftDemo, run_sft_demo
        from verl_hw_tools.demo.sft_config import SftSettings

        spec = demo_vendor(vendor)
        if real:
            require_hardware(spec)
        settings = SftSettings(steps=steps, processes=nproc, strategy=strategy.value, seed=seed)
        wish = SftDemo(spec=spec, settings=settings, output=output, real=real, keep=keep)
        passed = run_sft_demo(wish, Console()).passed
    if not passed:
        raise typer.Exit(FAILED)


app.command("grpo")(demo_rl.grpo)
app.command("ppo")(demo_rl.ppo)
