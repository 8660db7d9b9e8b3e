# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw new``: write the package of a vendor that has none yet."""

from pathlib import Path
from typing import Annotated

import typer

from verl_hw_tools.cli.outcome import reported


def new(
    vendor: Annotated[str, typer.Argument(metavar="VENDOR", help="Platform key, as 'acme': VERL_PLATFORM's value.")],
    device: Annotated[str, typer.Option(metavar="NAME", help="torch device type, as in torch.device('apu').")],
    ccl: Annotated[str, typer.Option(metavar="NAME", help="torch.distributed backend of the collective library.")],
    display_name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Name for people.", show_default="vendor and device")
    ] = None,
    in_tree: Annotated[bool, typer.Option("--in-tree", help="Add it to the checkout of verl-hw we are in.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The new folder.", show_default="./verl-hw-<vendor>")
    ] = None,
) -> None:
    """Write a complete package for a vendor: facts to fill in, platform, engines, tests on a simulated device.

    It passes its own tests as it is, and the demo runs on it. Nothing is overwritten.
    """
    with reported():
        from verl_hw_tools.scaffold.names import VendorNames, default_display
        from verl_hw_tools.scaffold.new_package import make_member, make_repository

        if in_tree and out is not None:
            raise typer.BadParameter("--in-tree has its own place, packages/: leave --out out")
        display = display_name if display_name is not None else default_display(vendor, device)
        names = VendorNames(vendor=vendor, device=device, ccl=ccl, display=display)
        made = make_member(names, Path.cwd()) if in_tree else make_repository(names, out or Path(names.distribution))
        typer.echo(f"{names.distribution} is in {made.folder}")
        for path in made.changed:
            typer.echo(f"changed: {path}")
        typer.echo("Next:")
        for number, step in enumerate(made.next_steps, start=1):
            typer.echo(f"  {number}. {step}")
