# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's table of platforms: our keys are asked first and cannot be taken over silently.

verl keeps the classes in ``PlatformRegistry._platforms``, where the last writer wins without a visible word, asks
NVIDIA first, and detects nothing wrong in ``VERL_PLATFORM`` until the first use. The table is replaced, once, by a
``dict`` that cares for these three (ledger row ``platform-table``).
"""

import difflib
import json
import os
import sys
from collections.abc import Iterable
from importlib import metadata
from importlib.resources import files
from typing import Any

from verl_hw_core import load_report, upstream
from verl_hw_core.errors import UnknownPlatformError
from verl_hw_core.facts.hardware import HardwareSpec

ROW = "platform-table"
"""Ledger row of the replacement."""

PLATFORM_ENVVAR = "VERL_PLATFORM"
_PLUGIN_GROUP = "verl.plugins"
# Device names, which verl's documents call platforms, of platforms of verl's own. Each is near a vendor's of ours in
# spelling ("npu" and "xpu"), and means another chip.
_SAME_PLATFORM = {
    "cuda": "nvidia",
    "npu": "huawei",
    "ascend": "huawei",
    "rocm": "amd",
    "hip": "amd",
    "gpu": "",
    "cpu": "",
}


class PlatformTable(dict[str, type[Any]]):
    """verl's platform classes by name, with the vendors' own names protected."""

    def __init__(self, others: dict[str, type[Any]]) -> None:
        super().__init__(others)
        self._owners: dict[str, HardwareSpec] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it as what it holds; what is unpickled tells nobody of replacements."""
        return _remade, (dict(self), dict(self._owners))

    def claim(self, spec: HardwareSpec, platform_cls: type[Any]) -> None:
        """Put ``platform_cls`` under every name of the vendor, ahead of all names that are not claimed."""
        for name in spec.names:
            present = super().get(name)
            if present is not None and not same_class(present, platform_cls):
                fate = "was registered under this name and is replaced"
                report_other_class(spec, f"registering platform {name!r}", present, fate)
            self._owners[name] = spec
            super().__setitem__(name, platform_cls)
        # A chip with a CUDA migration shim makes torch.cuda look available: ask for it before NVIDIA.
        for name in [name for name in self if name not in self._owners]:
            super().__setitem__(name, self.pop(name))

    def __setitem__(self, name: str, platform_cls: type[Any]) -> None:
        spec = self._owners.get(name)
        if spec is None or same_class(self[name], platform_cls):  # the same one comes again when it is reloaded
            super().__setitem__(name, platform_cls)
        else:
            fate = "tried to take this name over and was refused"
            report_other_class(spec, f"platform {name!r}", platform_cls, fate)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the class under ``name``; an unknown ``VERL_PLATFORM`` is an error that helps.

        Raises:
            UnknownPlatformError: ``name`` comes from ``VERL_PLATFORM`` and nothing provides it.
        """
        if name not in self and name == requested_platform():
            raise UnknownPlatformError(_unknown_message(name, self))
        return super().get(name, default)


def _remade(classes: dict[str, type[Any]], owners: dict[str, HardwareSpec]) -> PlatformTable:
    made = PlatformTable(classes)
    made._owners.update(owners)
    return made


def claim(spec: HardwareSpec, platform_cls: type[Any]) -> None:
    """Register ``platform_cls`` with verl under the vendor's key and aliases, which others cannot take."""
    from verl.plugin.platform.platform_manager import PlatformRegistry

    if _replace():
        PlatformRegistry._platforms.claim(spec, platform_cls)
    else:
        for name in spec.names:
            PlatformRegistry.register(platform=name)(platform_cls)


@upstream.applies(ROW)
def _replace() -> None:
    """Put our table in the place of verl's plain one; a second call changes nothing."""
    from verl.plugin.platform.platform_manager import PlatformRegistry

    upstream.replace(ROW, PlatformRegistry, "_platforms", PlatformTable(PlatformRegistry._platforms))


def same_class(first: type[Any], second: type[Any]) -> bool:
    """Whether both are one class, a reload of its module included."""
    return (first.__module__, first.__qualname__) == (second.__module__, second.__qualname__)


def _remedy(spec: HardwareSpec, other: type[Any]) -> str:
    """Say what to do about a class that somebody else registered under the vendor's name."""
    package = other.__module__.split(".")[0]
    if package == "verl":
        return f"Nothing need be done; to use verl's own, uninstall {spec.distribution}"
    return (
        f"Uninstall the package that provides {package!r}, or keep it and load it alone with VERL_USE_EXTERNAL_PLUGINS"
    )


def requested_platform() -> str:
    """Return the value of ``VERL_PLATFORM`` as verl reads it: stripped, lower case, empty when unset."""
    return os.environ.get(PLATFORM_ENVVAR, "").strip().lower()


def nearest_platform(wanted: str, known: Iterable[str]) -> str | None:
    """Return which of ``known`` somebody means who wrote ``wanted`` (lower case); None where a guess would mislead."""
    names = sorted(known)
    if wanted in _SAME_PLATFORM:
        meant = _SAME_PLATFORM[wanted]
        return meant if meant in names else None
    near = difflib.get_close_matches(wanted, names, n=1)
    return near[0] if near else None


def check_platform_variable(package: str) -> None:
    """Fail when ``VERL_PLATFORM`` names a platform that neither is nor will be registered.

    While plugins other than ``package``, which has just registered, have still to load, the question stays open;
    :meth:`PlatformTable.get` answers it then.

    Raises:
        UnknownPlatformError: Nothing provides the name; the text holds the nearest one.
    """
    wanted = requested_platform()
    from verl.plugin.platform.platform_manager import PlatformRegistry

    known = PlatformRegistry.registered_names()
    if wanted and wanted not in known and not _plugins_still_to_load(package):
        raise UnknownPlatformError(_unknown_message(wanted, known))


def _plugins_still_to_load(package: str) -> bool:
    """Whether plugins other than ``package`` are still to be imported, or in the middle of it."""
    allowed = os.environ.get("VERL_USE_EXTERNAL_PLUGINS", "auto").strip().lower()
    if allowed == "none":
        return False
    names = {name.strip() for name in allowed.split(",")}
    for entry in metadata.entry_points(group=_PLUGIN_GROUP):
        wanted = allowed == "auto" or entry.name in names
        if wanted and entry.module != package and not _is_imported(entry.module):
            return True
    return False


def _is_imported(module: str) -> bool:
    """Whether the module has run to its end: a wheel that is imported before verl waits for verl in its middle."""
    found = sys.modules.get(module)
    return found is not None and not getattr(found.__spec__, "_initializing", False)


def known_wheels() -> dict[str, str]:
    """Return the distribution that provides each platform name of ours, installed or not."""
    text = files("verl_hw_core").joinpath("known_wheels.json").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text)
    return found


def _unknown_message(wanted: str, known: Iterable[str]) -> str:
    value = f"{PLATFORM_ENVVAR}={os.environ.get(PLATFORM_ENVVAR)!r} (environment)"
    wheels = known_wheels()
    if wanted in wheels:
        return (
            f"{value} comes with {wheels[wanted]}, which is not installed or did not load: pip install {wheels[wanted]}"
        )
    nearest = nearest_platform(wanted, {*known, *wheels})
    hint = f"; did you mean {nearest!r}?" if nearest else "."
    return (
        f"{value} names no platform{hint} Known here: {', '.join(sorted(known))}. "
        f"Correct or unset {PLATFORM_ENVVAR}, or install the package that provides it"
    )


def report_other_class(spec: HardwareSpec, stage: str, other: type[Any], fate: str) -> None:
    """Warn that another package's class is not in force under the vendor's name, and say what to do about it."""
    load_report.report(
        spec.distribution,
        stage,
        f"{other.__module__}.{other.__qualname__} {fate}, so that platform and engines come from one package",
        _remedy(spec, other),
    )
