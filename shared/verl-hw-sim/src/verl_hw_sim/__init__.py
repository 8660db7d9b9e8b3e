# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated accelerators for verl hardware plugins.

Tiny on purpose: torch imports this module in every process, simulated or not.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from verl_hw_sim.records import Call

__all__ = ["autoload", "clear_recorded_calls", "recorded_calls", "simulated_environment"]


def autoload() -> None:
    """Entry point of group ``torch.backends``; torch calls it at the end of ``import torch``."""
    if os.environ.get("VERL_HW_SIM"):
        from verl_hw_sim.install import install_from_environment

        install_from_environment()


def simulated_environment(vendor: str, devices: int = 2, limits: str = "") -> dict[str, str]:
    """Variables that make child processes simulate a device. Cheap: does not import torch.

    Args:
        vendor: Key of a profile, as ``"cambricon"``.
        devices: Physical devices of the simulated machine, 1 to 16.
        limits: Value for ``VERL_HW_SIM_LIMITS``.

    Returns:
        Variables to add to a child's environment.

    Raises:
        SettingsError: An argument has a value that means nothing.
    """
    from verl_hw_sim.environment import environment_for

    return environment_for(vendor, devices, limits)


def recorded_calls() -> "tuple[Call, ...]":
    """Calls into the simulated stack that leave no other trace, oldest first."""
    from verl_hw_sim import records

    return records.recorded_calls()


def clear_recorded_calls() -> None:
    """Forget the recorded calls."""
    from verl_hw_sim import records

    records.clear_recorded_calls()
