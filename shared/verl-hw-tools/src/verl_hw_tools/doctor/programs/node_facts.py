# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a process of a node says of itself: a module of its own, so that a Ray worker imports it by name."""

import os
import platform
from importlib import metadata
from typing import Any

_PACKAGES = ("torch", "verl", "ray", "transformers", "tensordict")
_VARIABLES = ("VERL_PLATFORM", "VERL_USE_EXTERNAL_PLUGINS", "VERL_ENGINE_DEVICE", "VERL_ENGINE_VENDOR", "VERL_HW_SIM")


def node_facts() -> dict[str, Any]:
    """Versions, verl's variables and the vendor that verl would take here; torch is not imported."""
    from verl_hw_tools.choice import choose
    from verl_hw_tools.installed import CORE_DISTRIBUTION, installed_wheels

    wheels = installed_wheels()
    versions = {name: _version(name) for name in (*_PACKAGES, CORE_DISTRIBUTION)}
    return {
        "vendor": choose(wheels).vendor,
        "versions": {
            "python": platform.python_version(),
            **versions,
            **{wheel.distribution: wheel.version for wheel in wheels},
        },
        "variables": {name: os.environ.get(name, "") for name in _VARIABLES},
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
