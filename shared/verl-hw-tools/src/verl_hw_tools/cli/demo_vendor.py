# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which vendor a demo shows, and whether its hardware is here. Imports nothing heavy until it is called."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_hw_core.facts.hardware import HardwareSpec


def demo_vendor(vendor: str | None) -> "HardwareSpec":
    """Return the facts of the vendor asked for, or of the only one that is installed.

    Raises:
        UnknownVendorError: No such vendor wheel is installed, or several are and none was named.
    """
    from verl_hw_core.errors import UnknownVendorError
    from verl_hw_tools.installed import find_wheel, installed_wheels

    wheels = installed_wheels()
    if vendor is None and len(wheels) > 1:
        names = ", ".join(wheel.name for wheel in wheels)
        raise UnknownVendorError(f"several vendor wheels are installed, choose one with --vendor: {names}")
    if vendor is None and wheels:
        vendor = wheels[0].name
    return find_wheel(vendor or "any", wheels).facts


def require_hardware(spec: "HardwareSpec") -> None:
    """Check that the vendor's hardware is not surely absent.

    Raises:
        NoHardwareError: It is.
    """
    from verl_hw_core.detection import Verdict, explain, survey
    from verl_hw_tools.errors import NoHardwareError

    finding = survey([spec], thorough=True).findings[spec.key]
    # "Unknown" is not "no": the training processes will tell.
    if finding.verdict is Verdict.ABSENT:
        raise NoHardwareError(
            f"--real needs {spec.display_name}, which was not found here; leave --real out for a simulated device.\n"
            f"{explain(finding)}"
        )
