# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Lines of ``verl-hw --version``."""

from importlib.metadata import PackageNotFoundError, version

from verl_hw_tools.installed import CORE_DISTRIBUTION, TOOLS_DISTRIBUTION, installed_wheels


def version_lines() -> list[str]:
    """Name and version of core and tools, verl, the simulator and every installed vendor wheel."""
    wheels = [
        f"{wheel.distribution} {wheel.version}" + (f" (broken: {wheel.problem})" if wheel.problem else "")
        for wheel in installed_wheels()
    ]
    return [
        *(f"{name} {_version(name)}" for name in (CORE_DISTRIBUTION, TOOLS_DISTRIBUTION, "verl", "verl-hw-sim")),
        *wheels,
    ]


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
