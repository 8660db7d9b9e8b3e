# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which vendor's devices the suite runs on, and what its processes need in their environment to use them."""

import importlib
import os
from dataclasses import dataclass

from verl_hw_core.errors import UnknownVendorError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_tools.errors import MissingComponentError, NoHardwareError

SIMULATION_ENV = "VERL_HW_SIM"
LIMITS_ENV = "VERL_HW_SIM_LIMITS"
HOW_TO_SIMULATE = f"To check a simulated device: {SIMULATION_ENV}=<vendor>:4 verl-hw check (needs verl-hw-sim)"
_PLATFORM_ENV = "VERL_PLATFORM"
_PROBE_ROOT_ENV = "VERL_HW_PROBE_ROOT"


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where the checks run.

    Attributes:
        spec: The vendor's facts.
        environment: Environment of the processes.
        simulated: The value of ``VERL_HW_SIM``, or None for real devices.
        limits: The value of ``VERL_HW_SIM_LIMITS``; empty on real devices.
    """

    spec: HardwareSpec
    environment: dict[str, str]
    simulated: str | None
    limits: str


def choose_target(vendor: str | None) -> Target:
    """Return where the checks run.

    Args:
        vendor: The vendor asked for, or None for the one that detection chooses.

    Raises:
        UnknownVendorError: No installed wheel provides the vendor, or another one is simulated.
        NoHardwareError: No device was found.
        MissingComponentError: A simulation was asked for and the simulator is not installed.
    """
    from verl_hw_tools.demo.devices import base_environment, real_device

    simulated = os.environ.get(SIMULATION_ENV)
    if simulated:
        spec = _simulated_spec(simulated, vendor)
        variables = _simulation(simulated)
    else:
        spec = _real_spec(vendor)
        variables = {}
        if _PROBE_ROOT_ENV in os.environ:
            variables[_PROBE_ROOT_ENV] = os.environ[_PROBE_ROOT_ENV]
    return Target(
        spec=spec,
        environment={**base_environment(), **real_device(spec), **variables},
        simulated=simulated,
        limits=os.environ.get(LIMITS_ENV, "") if simulated else "",
    )


def _simulated_spec(simulated: str, vendor: str | None) -> HardwareSpec:
    key = simulated.partition(":")[0]
    spec = _installed(key)
    if vendor is not None and _installed(vendor) != spec:
        raise UnknownVendorError(
            f"--vendor {vendor} asks for another vendor than {SIMULATION_ENV}={simulated} simulates: "
            f"leave --vendor out, or set {SIMULATION_ENV}={vendor}:4"
        )
    return spec


def _simulation(simulated: str) -> dict[str, str]:
    try:
        simulator = importlib.import_module("verl_hw_sim")
        settings = importlib.import_module("verl_hw_sim.settings")
        errors = importlib.import_module("verl_hw_sim.errors")
    except ImportError as error:
        raise MissingComponentError(
            f"{SIMULATION_ENV}={simulated} asks for simulated devices: pip install verl-hw-sim, "
            f"or unset {SIMULATION_ENV} to check real ones"
        ) from error
    try:
        request = settings.parse_request(simulated)
        variables = simulator.simulated_environment(request.vendor, request.devices, os.environ.get(LIMITS_ENV, ""))
    except errors.SimulatorError as error:
        raise MissingComponentError(str(error)) from error
    return dict(variables)


def _real_spec(vendor: str | None) -> HardwareSpec:
    """The vendor that was asked for, by option or VERL_PLATFORM, whatever detection says; else the detected one."""
    from verl_hw_core.detection import survey
    from verl_hw_tools.installed import installed_specs

    asked = vendor or os.environ.get(_PLATFORM_ENV, "").strip().lower()
    if asked:
        return _installed(asked)
    specs = installed_specs()
    found = survey(specs, thorough=True)
    chosen = next((spec for spec in specs if spec.key == found.chosen), None)
    if chosen is None:
        installed = ", ".join(spec.key for spec in specs) or "none; pip install verl-hw-<vendor>"
        raise NoHardwareError(
            f"no device of an installed vendor was found here (installed: {installed}).\n"
            "'verl-hw detect' shows what was looked at; --vendor <vendor> checks without asking detection.\n"
            + HOW_TO_SIMULATE
        )
    return chosen


def _installed(vendor: str) -> HardwareSpec:
    from verl_hw_tools.installed import find_wheel, installed_wheels

    spec = find_wheel(vendor, installed_wheels()).spec
    if spec is None:
        raise AssertionError("find_wheel returns no wheel without facts")
    return spec
