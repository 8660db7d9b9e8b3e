# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m verl_hw_sim``: compile the simulated devices ahead of time, or say what there is."""

import argparse
import os
import sys
from collections.abc import Sequence

from verl_hw_sim.errors import SimulatorError
from verl_hw_sim.profiles import BUILTIN_PROFILES, Profile, get_profile
from verl_hw_sim.settings import SIM_ENVVAR, cache_directory


def _profiles(vendor: str) -> list[Profile]:
    return list(BUILTIN_PROFILES.values()) if vendor == "all" else [get_profile(vendor)]


def _build(vendor: str) -> None:
    from verl_hw_sim.build import TorchBuild, ensure_built
    from verl_hw_sim.errors import UnsupportedTorchError
    from verl_hw_sim.install import check_torch_can_host
    from verl_hw_sim.torch_support import check_torch_version

    check_torch_version(TorchBuild.installed().version)
    for profile in _profiles(vendor):
        try:
            check_torch_can_host(profile)
        except UnsupportedTorchError as error:
            if vendor != "all":
                raise
            print(f"{profile.vendor}: skipped: {error}")  # noqa: T201
            continue
        path = ensure_built(profile.kind, TorchBuild.installed(), profile.vendor)
        print(f"{profile.vendor}: {path}")  # noqa: T201


def _info() -> None:
    from verl_hw_sim.build import TorchBuild, find_built, find_compiler
    from verl_hw_sim.torch_support import SUPPORTED_TORCH, is_supported

    torch_build = TorchBuild.installed()
    compiler = find_compiler()
    supported = "" if is_supported(torch_build.version) else "not supported, "
    print(f"torch     {torch_build.version} ({supported}needs {SUPPORTED_TORCH})")  # noqa: T201
    print(f"compiler  {' '.join(compiler) if compiler else 'none found'}")  # noqa: T201
    print(f"cache     {cache_directory()}")  # noqa: T201
    for profile in BUILTIN_PROFILES.values():
        built = find_built(profile.kind, torch_build)
        state = "built" if built else "not built yet"
        print(f"{profile.vendor:<10}{profile.device_name:<6}{profile.ccl_backend:<6}{state}")  # noqa: T201


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m verl_hw_sim", description="Simulated accelerators for torch.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="compile ahead of time")
    build.add_argument("vendor", help="a vendor, or all")
    commands.add_parser("info", help="say what there is")
    options = parser.parse_args(arguments)
    # This process needs the real torch.
    os.environ.pop(SIM_ENVVAR, None)
    try:
        if options.command == "build":
            _build(options.vendor)
        else:
            _info()
    except SimulatorError as error:
        print(f"verl-hw-sim: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
