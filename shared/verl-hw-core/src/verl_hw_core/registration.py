# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``register(...)``: the one call that makes a vendor wheel known to verl.

It registers the platform class only. Engines follow when verl itself imports ``verl.workers.engine``: importing
them here would fix verl's platform singleton before the next wheel has been heard.
"""

import importlib
import sys
from functools import partial
from importlib import metadata
from types import ModuleType
from typing import Any

import wrapt
from packaging.version import InvalidVersion, Version

from verl_hw_core import load_report, platform_table, vendors
from verl_hw_core.errors import ContractMismatchError, UnknownPlatformError, VerlVersionError
from verl_hw_core.hardware import HardwareSpec

CONTRACT_VERSION = 1
"""Version of the contract between core and vendor wheels: raised when a wheel built before would break."""

MINIMUM_VERL = Version("0.9")  # first release with verl.plugin and its entry-point group

_ENGINE_MODULE = "verl.workers.engine"


def register(spec: HardwareSpec, *, platform: str, engines: str, contract: int) -> None:
    """Register a vendor's platform now, and its engines when verl imports its own.

    Calling it again (reload, ``VERL_USE_EXTERNAL_MODULES`` beside the entry point) changes nothing.

    Args:
        spec: The vendor's facts.
        platform: ``"module:Class"`` of its :class:`~verl_hw_core.platform.AcceleratorPlatform` subclass.
        engines: Module whose import registers its engines.
        contract: The :data:`CONTRACT_VERSION` that the wheel was written for.

    Raises:
        ContractMismatchError: The wheel was written for another contract.
        VerlVersionError: verl is missing or older than 0.9.
        Exception: Whatever importing the platform raised, after it was reported.
        SystemExit: ``VERL_PLATFORM`` names a platform that no installed package provides.
    """
    stage = f"registering platform {spec.key!r}"
    try:
        _check_contract(spec, contract)
        _require_verl(spec)
        platform_cls = _load_platform(platform)
        platform_table.claim(spec, platform_cls)
    except Exception as error:
        # Any error of a vendor module ends here: verl would hide it, and the other wheels must go on.
        load_report.report(spec.distribution, stage, load_report.describe(error), _remedy(spec), error)
        raise
    vendors.add(vendors.Vendor(spec, platform, engines))
    _say_if_too_late(spec)
    wrapt.register_post_import_hook(partial(_import_engines, spec.key), _ENGINE_MODULE)
    try:
        platform_table.check_platform_variable(platform.partition(":")[0].partition(".")[0])
    except UnknownPlatformError as error:
        # SystemExit, since verl swallows every Exception of a plugin and the run would end in another error later.
        raise SystemExit(f"verl-hw: {error}") from error


def _check_contract(spec: HardwareSpec, contract: int) -> None:
    if contract != CONTRACT_VERSION:
        core = metadata.version("verl-hw-core")
        older = "verl-hw-core" if contract > CONTRACT_VERSION else spec.distribution
        raise ContractMismatchError(
            f"{spec.distribution} was written for core contract {contract}, verl-hw-core {core} offers "
            f"{CONTRACT_VERSION}; upgrade the older one: pip install -U {older}"
        )


def _require_verl(spec: HardwareSpec) -> None:
    try:
        importlib.import_module("verl.plugin.platform.platform_manager")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{error.name}.".startswith("verl."):
            raise  # verl is there and lacks a requirement of its own: its error is the clearer one
        raise VerlVersionError(
            f"{spec.distribution} needs verl>={MINIMUM_VERL} (its plugin interface), found {_verl_version()}: "
            f"pip install -U 'verl>={MINIMUM_VERL}'"
        ) from error


def _verl_version() -> str:
    """Version of the verl that is imported or installed, for messages."""
    module = sys.modules.get("verl")
    version = getattr(module, "__version__", None)
    if version is None:
        try:
            version = metadata.version("verl")
        except metadata.PackageNotFoundError:
            return "none" if module is None else "a verl without version"
    try:
        return f"verl {Version(str(version))}"
    except InvalidVersion:
        return f"verl {version}"


def _load_platform(reference: str) -> type[Any]:
    module, _, name = reference.partition(":")
    platform_cls: type[Any] = getattr(importlib.import_module(module), name)
    missing: frozenset[str] = getattr(platform_cls, "__abstractmethods__", frozenset())
    if missing:
        raise VerlVersionError(
            f"{_verl_version()} asks every platform for {', '.join(sorted(missing))}, which {name} does not have: "
            "pip install -U verl-hw-core"
        )
    return platform_cls


def _remedy(spec: HardwareSpec) -> str:
    return (
        f"{spec.display_name} stays unknown to verl until this is mended; other vendors are not affected. "
        f"Try 'python -c \"import {spec.distribution.replace('-', '_')}\"' for the traceback"
    )


def _say_if_too_late(spec: HardwareSpec) -> None:
    """Warn when something fixed verl's platform before this wheel could be asked."""
    manager = sys.modules["verl.plugin.platform.platform_manager"]
    current = getattr(manager, "_current_platform", None)
    if current is None or current.vendor_name == spec.key:
        return
    load_report.report(
        spec.distribution,
        f"registering platform {spec.key!r}",
        f"verl's platform was already fixed to {current.vendor_name!r} by something loaded earlier, so "
        f"{spec.display_name} is not asked",
        "A plugin that imports verl.workers while loading does that: uninstall it, or load only the wheels you "
        f"need with VERL_USE_EXTERNAL_PLUGINS={spec.key}",
    )


def _import_engines(key: str, _verl_module: ModuleType) -> None:
    """Import the engines of vendor ``key``; runs right after verl has imported its own."""
    vendor = vendors.get(key)
    if vendor is None:
        return
    try:
        importlib.import_module(vendor.engines)
    except Exception as error:  # noqa: BLE001 - one vendor's broken engines must not stop verl or another vendor
        load_report.report(
            vendor.spec.distribution,
            f"importing {vendor.engines}",
            load_report.describe(error),
            f"No {vendor.spec.display_name} training engine is available until this is mended",
            error,
        )
