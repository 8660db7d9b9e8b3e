# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which vendor wheels are installed, and their facts, without importing verl or running a wheel's registration.

Importing a wheel's package registers it with verl, which costs about ten seconds. Its ``spec.py`` holds plain data,
so that file alone is loaded here, under a private name.
"""

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from verl_hw_core.errors import InvalidSpecError, UnknownVendorError
from verl_hw_core.facts.hardware import HardwareSpec

PLUGIN_GROUP = "verl.plugins"
PLUGINS_ENVVAR = "VERL_USE_EXTERNAL_PLUGINS"
CORE_DISTRIBUTION, TOOLS_DISTRIBUTION = "verl-hw-core", "verl-hw-tools"


@dataclass(frozen=True, kw_only=True)
class InstalledWheel:
    """One installed vendor wheel.

    Attributes:
        name: Name of its entry point.
        module: Top-level import package.
        distribution: Name of its distribution.
        version: Version of its distribution.
        spec: The vendor's facts, or None when they could not be loaded.
        problem: Why they could not be loaded, or None.
    """

    name: str
    module: str
    distribution: str
    version: str
    spec: HardwareSpec | None
    problem: str | None = None

    @property
    def facts(self) -> HardwareSpec:
        """The vendor's facts.

        Raises:
            InvalidSpecError: They could not be loaded.
        """
        if self.spec is None:
            raise InvalidSpecError(f"{self.distribution} {self.version} is installed but broken: {self.problem}")
        return self.spec


def installed_wheels(candidates: Iterable[EntryPoint] | None = None) -> tuple[InstalledWheel, ...]:
    """Return the installed vendor wheels, sorted by name; a broken one is reported and disturbs no other.

    A vendor wheel is a distribution that requires verl-hw-core and has an entry point of group ``verl.plugins``.

    Args:
        candidates: Entry points to look at instead of the installed ones.
    """
    points = entry_points(group=PLUGIN_GROUP) if candidates is None else candidates
    found = {point.name: (point, point.dist) for point in points}
    wheels = [_wheel(point, dist) for point, dist in found.values() if dist is not None and _requires_core(dist)]
    return tuple(sorted(wheels, key=lambda wheel: wheel.name))


def installed_specs(candidates: Iterable[EntryPoint] | None = None) -> tuple[HardwareSpec, ...]:
    """Return the facts of every installed vendor wheel whose facts load, sorted by the wheel's name."""
    return tuple(wheel.spec for wheel in installed_wheels(candidates) if wheel.spec is not None)


def find_wheel(vendor: str, wheels: Iterable[InstalledWheel]) -> InstalledWheel:
    """Return the wheel that provides a vendor, asked for by its platform key or an alias.

    Raises:
        UnknownVendorError: No installed wheel provides it.
        InvalidSpecError: The wheel is installed but broken.
    """
    wheels = tuple(wheels)
    wanted = vendor.strip().lower()
    for wheel in wheels:
        if wanted == wheel.name or (wheel.spec is not None and wanted in wheel.spec.names):
            _ = wheel.facts  # a broken wheel is of no use to whoever asks for it by name
            return wheel
    raise UnknownVendorError(_unknown(wanted, wheels))


def name_of(distribution: Distribution) -> str:
    """Return a distribution's name; of one whose metadata an interrupted install left without, that of its folder."""
    name = distribution.metadata["Name"] if distribution.metadata is not None else None
    return name or Path(str(getattr(distribution, "_path", "unnamed"))).name.partition("-")[0]


def is_loaded(entry_point: str) -> bool:
    """Whether verl would load the entry point of this name; reads ``VERL_USE_EXTERNAL_PLUGINS`` as verl does."""
    allowed = os.environ.get(PLUGINS_ENVVAR, "auto").strip().lower()
    return allowed == "auto" or (allowed != "none" and entry_point in {name.strip() for name in allowed.split(",")})


def _unknown(wanted: str, wheels: tuple[InstalledWheel, ...]) -> str:
    if not wheels:
        return f"no vendor wheel is installed (wanted {wanted!r}): pip install verl-hw-<vendor>"
    names = [name for wheel in wheels for name in {wheel.name, *(wheel.spec.names if wheel.spec else ())}]
    near = get_close_matches(wanted, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    listed = ", ".join(f"{wheel.name} ({wheel.distribution} {wheel.version})" for wheel in wheels)
    return f"unknown vendor {wanted!r}: {hint}installed: {listed}; another one: pip install verl-hw-<vendor>"


def _requires_core(distribution: Distribution) -> bool:
    return any(
        re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-") == CORE_DISTRIBUTION
        for requirement in distribution.requires or ()
    )


def _wheel(point: EntryPoint, distribution: Distribution) -> InstalledWheel:
    package = point.module.partition(".")[0]
    spec: HardwareSpec | None = None
    problem: str | None = None
    try:
        spec = _load_spec(package)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the file is another package's code; the problem is kept and shown
        problem = f"{type(error).__name__}: {error}"
    return InstalledWheel(
        name=point.name,
        module=package,
        distribution=name_of(distribution),
        version=distribution.version or "unknown",
        spec=spec,
        problem=problem,
    )


def _load_spec(package: str) -> HardwareSpec:
    found = PathFinder.find_spec(package)
    locations = found.submodule_search_locations if found is not None else None
    if not locations:
        raise InvalidSpecError(f"package {package!r} is not importable: reinstall its distribution")
    path = Path(next(iter(locations))) / "spec.py"
    if not path.is_file():
        raise InvalidSpecError(f"{path} is missing: reinstall the distribution of {package!r}")
    module_spec = spec_from_file_location(f"_verl_hw_spec_of_{package}", path)
    if module_spec is None or module_spec.loader is None:
        raise InvalidSpecError(f"{path} cannot be loaded as a Python file")
    module = module_from_spec(module_spec)
    # dataclasses look their module up by name while a class body runs.
    sys.modules[module_spec.name] = module
    try:
        module_spec.loader.exec_module(module)
    finally:
        del sys.modules[module_spec.name]
    value = getattr(module, "SPEC", None)
    if not isinstance(value, HardwareSpec):
        raise InvalidSpecError(f"{path} must define SPEC as a HardwareSpec, found {type(value).__name__}")
    return value
