# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The simulation of this process, for the modules that act on it after installation."""

from dataclasses import dataclass
from types import ModuleType

from verl_hw_sim.errors import NotSimulatingError
from verl_hw_sim.profiles import Profile
from verl_hw_sim.settings import SIM_ENVVAR


@dataclass(frozen=True)
class Simulation:
    """What was installed.

    Attributes:
        profile: The vendor.
        devices: Physical devices of the simulated machine, before any visibility mask.
        native: The compiled half.
        device_module: ``torch.<device>``.
    """

    profile: Profile
    devices: int
    native: ModuleType
    device_module: ModuleType


_active: Simulation | None = None


def active_simulation() -> Simulation:
    """The simulation of this process.

    Raises:
        NotSimulatingError: There is none.
    """
    if _active is None:
        raise NotSimulatingError(
            f"this process simulates no device. Set {SIM_ENVVAR}, as {SIM_ENVVAR}=cambricon:2, before it imports torch."
        )
    return _active


def is_active() -> bool:
    """Whether this process simulates a device."""
    return _active is not None


def set_active(simulation: Simulation) -> None:
    """Called once, by the installer."""
    global _active
    _active = simulation
