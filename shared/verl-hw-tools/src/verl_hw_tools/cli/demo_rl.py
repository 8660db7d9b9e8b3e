# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw demo grpo`` and ``verl-hw demo ppo``: verl's PPO trainer on a vendor's simulated or real device."""

from pathlib import Path
from typing import Annotated

import typer

from verl_hw_tools.cli.demo_strategy import Engine, Strategy
from verl_hw_tools.cli.demo_vendor import demo_vendor, require_hardware
from verl_hw_tools.cli.outcome import FAILED, reported

_DEVICES = 8
Vendor = Annotated[
    str | None, typer.Option(metavar="NAME", help="Vendor to show; needed when several vendor wheels are installed.")
]
Steps = Annotated[int, typer.Option(min=1, max=500, metavar="N", help="Training steps; the reward needs about 20.")]
Nodes = Annotated[int, typer.Option(min=1, max=4, metavar="N", help="Nodes of the Ray cluster, simulated here.")]
Processes = Annotated[
    int | None,
    typer.Option(
        min=1, max=_DEVICES, metavar="N", help="Workers on each node, one device each.", show_default="2 in all"
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of data, weights, order and answers.")]
Output = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Output folder.", show_default="a fresh ./outputs/demo-<algorithm>-<vendor>"),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep model and data too.")]
Real = Annotated[bool, typer.Option("--real", help="Use the vendor's hardware, not a simulated device.")]


def grpo(
    vendor: Vendor = None,
    steps: Steps = 20,
    nodes: Nodes = 1,
    nproc: Processes = None,
    strategy: Engine = Strategy.FSDP2,
    seed: Seed = 0,
    output: Output = None,
    keep: Keep = False,
    real: Real = False,
) -> None:
    """Run verl's GRPO on Ray: a tiny random model learns a task whose answers can be verified.

    Training and generation are on the device, which is simulated on the CPU unless --real is given. Ends with a
    picture of the reward. Nothing is downloaded.
    """
    _run("grpo", vendor, steps, nodes, nproc, strategy, seed, output, keep, real)


def ppo(
    vendor: Vendor = None,
    steps: Steps = 20,
    nodes: Nodes = 1,
    nproc: Processes = None,
    strategy: Engine = Strategy.FSDP2,
    seed: Seed = 0,
    output: Output = None,
    keep: Keep = False,
    real: Real = False,
) -> None:
    """Run verl's PPO with a critic on Ray: as ``verl-hw demo grpo``, with a value model beside the policy."""
    _run("ppo", vendor, steps, nodes, nproc, strategy, seed, output, keep, real)


def _run(
    algorithm: str,
    vendor: str | None,
    steps: int,
    nodes: int,
    nproc: int | None,
    strategy: Strategy,
    seed: int,
    output: Path | None,
    keep: bool,
    real: bool,
) -> None:
    if nodes > 1 and real:
        raise typer.BadParameter(
            "--nodes simulates nodes on this machine; on hardware start Ray on each node and run verl.trainer.main_ppo"
        )
    with reported():
        from rich.console import Console

        from verl_hw_tools.demo.rl.run import RlDemo, run_rl_demo
        from verl_hw_tools.demo.rl.settings import RlSettings

        spec = demo_vendor(vendor)
        if real:
            require_hardware(spec)
        processes = nproc or max(1, 2 // nodes)
        settings = RlSettings(
            algorithm=algorithm, steps=steps, nodes=nodes, processes=processes, seed=seed, strategy=strategy.value
        )
        wish = RlDemo(spec=spec, settings=settings, output=output, real=real, keep=keep)
        passed = run_rl_demo(wish, Console()).passed
    if not passed:
        raise typer.Exit(FAILED)
