# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``register(...)``: the one call that makes a vendor wheel known to verl.

It registers the platform class only. Engines follow when verl itself imports ``verl.workers.engine``: importing
them here would fix verl's platform singleton before the next wheel has been heard.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from types import ModuleType
from typing import Any

from packaging.version import InvalidVersion, Version

from verl_hw_core import load_report, upstream
from verl_hw_core.errors import ContractMismatchError, StrictModeError, UnknownPlatformError, VerlVersionError
from verl_hw_core.facts import vendors
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform import table as platform_table
from verl_hw_core.ray_support import hooks
from verl_hw_core.rollout import registry as rollout_registry

CONTRACT_VERSION = 1
"""Version of the contract between core and vendor wheels: raised when a wheel built before would break."""

MINIMUM_VERL = Version("0.9")  # first release with verl.plugin and its entry-point group

_ROLLOUT_CONFIG_MODULE = "verl.workers.config.rollout"
_ENGINE_BASE_MODULE = "verl.workers.engine.base"  # imported first of all that verl.workers.engine imports


def register(spec: HardwareSpec | str, *, platform: str, engines: str, contract: int) -> None:
    """Register a vendor's platform now, and its engines when verl imports its own.

    Calling it again (reload, ``VERL_USE_EXTERNAL_MODULES`` beside the entry point) changes nothing.

    Args:
        spec: The vendor's facts, as ``"module:NAME"``, so that a fault in them is reported as any other.
        platform: ``"module:Class"`` of its :class:`~verl_hw_core.platform.AcceleratorPlatform` subclass.
        engines: Module whose import registers its engines.
        contract: The :data:`CONTRACT_VERSION` that the wheel was written for.

    Raises:
        ContractMismatchError: The wheel was written for another contract.
        VerlVersionError: verl is missing or older than 0.9.
        Exception: Whatever importing spec or platform raised, after it was reported.
        SystemExit: ``VERL_PLATFORM`` names a platform that no installed package provides, or ``VERL_HW_STRICT`` holds
            neither 1 nor 0.
    """
    try:
        load_report.warnings_are_errors()
    except StrictModeError as error:
        raise SystemExit(f"verl-hw: {error}") from error  # as below
    package = platform.partition(":")[0].partition(".")[0]
    wheel = spec.distribution if isinstance(spec, HardwareSpec) else package.replace("_", "-")
    try:
        _check_contract(wheel, contract)
        facts: HardwareSpec = spec if isinstance(spec, HardwareSpec) else _load(spec)
        _require_verl(wheel)
        platform_table.claim(facts, _load_platform(platform))
    except Exception as error:
        # Any error of a vendor module ends here: verl would hide it, and the other wheels must go on.
        load_report.report(wheel, "registering its platform", load_report.describe(error), _remedy(package), error)
        raise
    _say_if_too_late(facts)
    vendors.add(vendors.Vendor(facts, platform, engines))
    chosen = partial(_is_chosen, facts.key)
    if _ENGINE_BASE_MODULE not in sys.modules:  # too late otherwise, and asking for the platform would fix it
        upstream.when_imported(_ENGINE_BASE_MODULE, _defer_megatron, chosen)
    upstream.when_imported("verl.workers.engine", partial(_import_engines, facts.key))
    upstream.when_imported("verl.checkpoint_engine", partial(_register_weight_sync, facts.key))
    upstream.when_imported("verl.workers.rollout.vllm_rollout.bucketed_weight_transfer", _change_transfer, chosen)
    if not facts.vllm_sleep and _ROLLOUT_CONFIG_MODULE not in sys.modules:  # as above
        upstream.when_imported(_ROLLOUT_CONFIG_MODULE, rollout_registry.refuse_sleep, chosen)
    hooks.install()
    rollout_registry.register_when_imported()
    try:
        platform_table.check_platform_variable(package)
    except UnknownPlatformError as error:
        # SystemExit, since verl swallows every Exception of a plugin and the run would end in another error later.
        # Said before as well: in a thread or a Ray task the exit's own text is lost.
        load_report.report(wheel, "checking VERL_PLATFORM", str(error), "", error)
        raise SystemExit(f"verl-hw: {error}") from error


def _check_contract(wheel: str, contract: int) -> None:
    if contract != CONTRACT_VERSION:
        core = metadata.version("verl-hw-core")
        older = "verl-hw-core" if contract > CONTRACT_VERSION else wheel
        raise ContractMismatchError(
            f"{wheel} was written for core contract {contract}, verl-hw-core {core} offers {CONTRACT_VERSION}; upgrade "
            f"the older one: pip install -U {older}"
        )


def _require_verl(wheel: str) -> None:
    try:
        importlib.import_module("verl.plugin.platform.platform_manager")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{error.name}.".startswith("verl."):
            raise  # verl is there and lacks a requirement of its own: its error is the clearer one
        raise VerlVersionError(
            f"{wheel} needs verl>={MINIMUM_VERL} (its plugin interface), found {_verl_version()}: "
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


def _load(reference: str) -> Any:
    """Import ``"module:name"``."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def _load_platform(reference: str) -> type[Any]:
    platform_cls: type[Any] = _load(reference)
    missing: frozenset[str] = getattr(platform_cls, "__abstractmethods__", frozenset())
    if missing:
        raise VerlVersionError(
            f"{_verl_version()} asks every platform for {', '.join(sorted(missing))}, which {reference} does not have: "
            "pip install -U verl-hw-core"
        )
    return platform_cls


def _remedy(package: str) -> str:
    return (
        "verl does not know its hardware until this is mended; other vendors are not affected. "
        f"For the traceback: python -c 'import {package}'"
    )


def _say_if_too_late(spec: HardwareSpec) -> None:
    """Warn when something fixed verl's platform by detection before this wheel could be asked."""
    known = upstream.check("platform-singleton")
    if not known or platform_table.requested_platform() or vendors.get(spec.key) is not None:
        return  # nobody is asked, or this is a reload
    manager = sys.modules["verl.plugin.platform.platform_manager"]
    current = manager._current_platform
    if current is None or current.vendor_name == spec.key:
        return
    load_report.report(
        spec.distribution,
        "registering its platform",
        f"verl's platform was already fixed to {current.vendor_name!r} by something loaded earlier, so "
        f"{spec.display_name} is not asked",
        "A plugin that imports verl.workers while loading does that: uninstall it, or load only the wheels you "
        f"need with VERL_USE_EXTERNAL_PLUGINS={spec.key}",
    )


def _is_chosen(key: str) -> bool:
    from verl.plugin.platform import get_platform

    return bool(get_platform().vendor_name == key)


def _defer_megatron(_verl_module: ModuleType) -> None:
    """Keep verl from importing Megatron before an engine needs it."""
    importlib.import_module("verl_hw_core.megatron.loading").defer()


def _import_engines(key: str, _verl_module: ModuleType) -> None:
    """Import the engines of vendor ``key``; runs right after verl has imported its own."""
    if vendor := vendors.get(key):
        lost = f"No {vendor.spec.display_name} training engine is available until this is mended"
        with _reported(vendor.spec, f"importing {vendor.engines}", lost, (Exception, SystemExit)):
            importlib.import_module(vendor.engines)


def _register_weight_sync(key: str, _verl_module: ModuleType) -> None:
    """Register the checkpoint engines of vendor ``key``; runs right after verl has imported its own."""
    if vendor := vendors.get(key):
        lost = "Weights cannot be sent to separate rollout workers until this is mended"
        with _reported(vendor.spec, "registering its checkpoint engines", lost):
            importlib.import_module("verl_hw_core.weight_sync.engine").register(key)


@contextmanager
def _reported(spec: HardwareSpec, stage: str, lost: str, errors: Any = Exception) -> Iterator[None]:
    """Report an error and go on: one vendor's part must not stop verl or another vendor."""
    try:
        yield
    except errors as error:
        load_report.report(spec.distribution, stage, load_report.describe(error), lost, error)


def _change_transfer(_verl_module: ModuleType) -> None:
    """Give verl's transfer to vLLM a socket of this cluster's own, and let it take weights larger than its bucket."""
    transfer = importlib.import_module("verl_hw_core.weight_sync.colocated_transfer")
    upstream.apply(transfer.SOCKET_ROW)
    upstream.apply(transfer.ROW)
