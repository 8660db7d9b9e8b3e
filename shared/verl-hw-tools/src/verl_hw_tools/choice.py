# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which installed vendor verl would choose here, and why, from the environment and what detection found."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from verl_hw_core.detection import Survey, Verdict, survey
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform.table import PLATFORM_ENVVAR, nearest_platform, requested_platform
from verl_hw_tools.installed import PLUGINS_ENVVAR, InstalledWheel, is_loaded

SIM_ENVVAR = "VERL_HW_SIM"
PROBE_ROOT_ENVVAR = "VERL_HW_PROBE_ROOT"
_SHOWN = (PLATFORM_ENVVAR, PLUGINS_ENVVAR, SIM_ENVVAR, PROBE_ROOT_ENVVAR)


@dataclass(frozen=True)
class Choice:
    """What verl would do.

    Attributes:
        vendor: Key of the vendor that it would use, or None when it would use none of the installed ones.
        because: The reason, for people.
    """

    vendor: str | None
    because: str


def relevant_variables() -> dict[str, str]:
    """Variables that are set and change what is found or chosen."""
    return {name: os.environ[name] for name in _SHOWN if os.environ.get(name)}


def choose(wheels: Sequence[InstalledWheel]) -> Choice:
    """Say which of the installed vendors verl would use in a process started from here."""
    specs = [wheel.spec for wheel in wheels if wheel.spec is not None and is_loaded(wheel.name)]
    if requested_platform():
        return _named(requested_platform(), specs)
    if not specs:
        return Choice(None, "verl loads no vendor wheel" + (f" ({_setting(PLUGINS_ENVVAR)})" if wheels else ""))
    simulated = os.environ.get(SIM_ENVVAR, "").partition(":")[0].strip().lower()
    if simulated and find_spec("verl_hw_sim") is not None:
        return _simulated(simulated, specs)
    return _found(survey(specs, thorough=True), specs)


def _named(wanted: str, specs: Sequence[HardwareSpec]) -> Choice:
    for spec in specs:
        if wanted in spec.names:
            meaning = "" if wanted == spec.key else f", which means {spec.key}"
            return Choice(spec.key, f"{_setting(PLATFORM_ENVVAR)}{meaning}")
    hint = _hint(wanted, [name for spec in specs for name in spec.names])
    return Choice(
        None,
        f"{_setting(PLATFORM_ENVVAR)} is a name of no vendor wheel that verl loads here: verl itself or another "
        f"plugin must provide it{hint}",
    )


def _hint(wanted: str, known: Sequence[str]) -> str:
    near = nearest_platform(wanted, known)
    return f"; did you mean {near!r}?" if near else ""


def _simulated(vendor: str, specs: Sequence[HardwareSpec]) -> Choice:
    key = next((spec.key for spec in specs if spec.key == vendor), None)
    if key is None:
        hint = _hint(vendor, [spec.key for spec in specs])
        return Choice(None, f"{_setting(SIM_ENVVAR)} names no vendor whose wheel verl loads here{hint}")
    return Choice(
        key,
        f"{_setting(SIM_ENVVAR)}: processes that import torch see a simulated machine. This command does not import "
        "torch, so the evidence shown is what it can see without",
    )


def _found(result: Survey, specs: Sequence[HardwareSpec]) -> Choice:
    if result.conflict:
        return Choice(result.chosen, result.conflict_message())
    if result.chosen is not None:
        best = result.findings[result.chosen].best
        return Choice(result.chosen, "the only one that is present" + (f": {best.why}" if best else ""))
    unknown = [spec.key for spec in specs if result.findings[spec.key].verdict is Verdict.UNKNOWN]
    if unknown:
        return Choice(None, f"none is present for certain. Set {PLATFORM_ENVVAR} if you have {' or '.join(unknown)}")
    return Choice(None, "no hardware of theirs was found, so verl goes on to its own platforms")


def _setting(variable: str) -> str:
    return f"{variable}={os.environ[variable]}"
