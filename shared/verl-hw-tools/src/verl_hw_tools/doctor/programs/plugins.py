# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's plugins: each one's load, with the error that verl hides, and which package owns what afterwards."""

import sys
from importlib import metadata
from importlib.metadata import EntryPoint
from typing import Any

from verl_hw_tools.doctor.stages import Stages
from verl_hw_tools.installed import PLUGIN_GROUP, is_loaded, name_of

PREFIX = "plugin "
"""First part of the name of a plugin's stage; the rest is the entry point's name."""


def tell_each_load(stages: Stages) -> None:
    """From now on, every load of a plugin is a stage of its own: verl logs what it raises at DEBUG only."""
    load = EntryPoint.load

    def told(point: EntryPoint) -> Any:
        if point.group != PLUGIN_GROUP:
            return load(point)
        with stages.stage(PREFIX + point.name) as data:
            value = load(point)
            data["value"] = {"module": point.module, "distribution": _distribution(point)}
        return value

    setattr(EntryPoint, "load", told)  # noqa: B010 - the checker takes no other signature


def load_all() -> None:
    """Load every plugin that verl would load; what one raises disturbs no other, as in verl."""
    for point in metadata.entry_points(group=PLUGIN_GROUP):
        if is_loaded(point.name):
            try:
                point.load()
            except Exception:  # noqa: BLE001, S112 - told by its stage
                continue


def platforms() -> dict[str, dict[str, str]]:
    """verl's platforms by name, with the class and the package in force."""
    from verl.plugin.platform.platform_manager import PlatformRegistry

    found = {}
    for name in PlatformRegistry.registered_names():
        owner = PlatformRegistry.get(name)
        if owner is not None:
            module = owner.__module__
            found[name] = {"class": f"{module}.{owner.__qualname__}", "distribution": owner_of(module)}
    return found


def platform() -> dict[str, Any]:
    """The platform that verl really takes in this process."""
    from verl.plugin.platform import get_platform

    found = get_platform()
    return {
        "vendor": found.vendor_name,
        "device": found.device_name,
        "class": f"{type(found).__module__}.{type(found).__qualname__}",
        "distribution": owner_of(type(found).__module__),
        "available": bool(found.is_available()),
        "ccl": found.communication_backend_name(),
        "resource": found.ray_resource_name(),
    }


def reports() -> list[dict[str, str]]:
    """What the core itself reported while wheels were loaded."""
    from dataclasses import asdict

    from verl_hw_core import load_report

    return [asdict(problem) for problem in load_report.problems()]


def owner_of(module: str) -> str:
    """Distribution of a module: a plugin's, verl, or its top-level package."""
    package = module.partition(".")[0]
    for point in metadata.entry_points(group=PLUGIN_GROUP):
        if point.module.partition(".")[0] == package:
            return _distribution(point)
    if package == "__main__" or package not in sys.modules:
        return package
    try:
        return metadata.metadata(package.replace("_", "-"))["Name"] or package
    except metadata.PackageNotFoundError:
        return package


def _distribution(point: EntryPoint) -> str:
    return name_of(point.dist) if point.dist is not None else point.module
