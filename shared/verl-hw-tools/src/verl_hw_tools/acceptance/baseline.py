# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a vendor's stack adds to the baseline run: for ``scripts/baseline_grpo_gsm8k.sh``, one setting a line.

Lines are ``env<TAB>NAME=VALUE`` for the environment of the training command, ``option<TAB>KEY=VALUE`` for verl's
trainer and ``vendor<TAB>NAME`` for the log. Nothing but the standard library and the vendor's facts is imported.
"""

import argparse
import sys
from collections.abc import Sequence

from verl_hw_core.errors import VerlHwError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform.table import PLATFORM_ENVVAR
from verl_hw_tools.choice import choose
from verl_hw_tools.errors import NoHardwareError
from verl_hw_tools.installed import find_wheel, installed_wheels

BUILT_IN = "none"
"""Name that stands for verl's own platforms, as on the machine of a reference run."""


def vendor_lines(spec: HardwareSpec) -> list[str]:
    """Return the settings of one vendor."""
    return [
        f"vendor\t{spec.display_name} ({spec.distribution})",
        f"env\t{PLATFORM_ENVVAR}={spec.key}",
        *(f"env\t{name}={value}" for name, value in spec.launch_env),
        *(f"option\t{key}={value}" for key, value in spec.trainer_options),
    ]


def baseline_lines(vendor: str | None) -> list[str]:
    """Return the settings for a vendor.

    Args:
        vendor: Platform key or alias; ``"none"`` for verl's own platforms; None for what detection chooses here.

    Raises:
        UnknownVendorError: No installed wheel provides it.
        NoHardwareError: None was named, and none was found.
    """
    if vendor == BUILT_IN:
        return ["vendor\tverl's own platform"]
    wheels = installed_wheels()
    if vendor is None:
        choice = choose(wheels)
        if choice.vendor is None:
            raise NoHardwareError(
                f"no vendor was named and none was found here ({choice.because}). Set VENDOR to the key of an "
                f"installed vendor wheel, or to {BUILT_IN} for verl's own platform (the reference run)"
            )
        vendor = choice.vendor
    return vendor_lines(find_wheel(vendor, wheels).facts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the settings; exit code 2 when there are none to print."""
    parser = argparse.ArgumentParser(prog="python -m verl_hw_tools.acceptance.baseline", description=__doc__)
    parser.add_argument("--vendor", help="platform key or alias, or 'none'; otherwise what detection chooses")
    options = parser.parse_args(arguments)
    try:
        lines = baseline_lines(options.vendor or None)
    except VerlHwError as error:
        sys.stderr.write(f"baseline: {error}\n")
        return 2
    sys.stdout.write("".join(line + "\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
