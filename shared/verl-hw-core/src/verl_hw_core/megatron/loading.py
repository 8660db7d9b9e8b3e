# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""When Megatron is imported, and after what; with one error for each thing that may be missing.

verl imports its Megatron package together with all its engines. That is too early: a vendor's CUDA migration has to
come before megatron, and in a process without a Megatron engine it must not come at all. verl's package also deletes a
``TORCH_CUDA_ARCH_LIST`` of the user's where torch.cuda has no device. So it is put off until an engine is built, or
until somebody imports one of its modules, as a recipe does that derives its own engine from verl's.

The migration makes ``torch.cuda`` mean the vendor's device. Megatron-core binds names of torch.cuda while it is
imported (the RNG functions, the tensor classes), so a migration that comes later reaches half of it.
"""

import importlib
import importlib.abc
import importlib.util
import os
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.errors import LoadOrderError, MegatronError, MegatronImportError, MegatronMissingError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.load_report import describe
from verl_hw_core.megatron.settings import has_transformer_engine
from verl_hw_core.upstream import patches

ROW = "megatron-import"
"""Ledger row of the placeholders."""

PACKAGE = "verl.workers.engine.megatron"
# Ascend's engines, which import megatron as well (verl 0.9.0); no device of ours uses them.
_ASCEND_ROW = "mindspeed-import"
_ASCEND_PACKAGE = "verl.workers.engine.mindspeed"
_ARCH_LIST = "TORCH_CUDA_ARCH_LIST"

INSTALL = "pip install --no-deps megatron-core mbridge einops"
"""``--no-deps``: what megatron-core requires includes torch, which must stay the vendor's."""

MIGRATION_ENVVAR = "VERL_HW_CUDA_MIGRATION"
"""Names another module than the vendor wheel does."""

# Packages that bind names of torch.cuda while they are imported.
_CUDA_USERS = ("megatron", "mbridge", "transformer_engine", "apex")
_IMPORTERS_SHOWN = 3


def load_engine(spec: HardwareSpec, name: str) -> type[Any]:
    """Import a class of ``verl.workers.engine.megatron`` for a vendor, in the order that the vendor needs.

    Raises:
        MegatronMissingError: megatron-core is not installed.
        MegatronImportError: Part of it, or of the vendor's stack, is installed and does not import.
        LoadOrderError: Megatron was imported before the vendor's CUDA migration.
        MegatronError: The vendor has no CUDA migration.
        UpstreamPatchError: verl or megatron-core lacks a name without which numbers would be wrong.
    """
    _load_megatron(spec)
    package = _import(PACKAGE, "verl's Megatron engine")
    upstream.check("megatron-engine", "megatron-offload-order")
    upstream.require_applied()
    engine: type[Any] = getattr(package, name)
    return engine


def _load_megatron(spec: HardwareSpec) -> None:
    """Import megatron-core after the vendor's migration, and patch it before verl binds names of it."""
    if not _is_installed("megatron.core"):
        raise MegatronMissingError(
            f"strategy=megatron needs megatron-core, which is not installed. Install the vendor's build of it, or: "
            f"{INSTALL}"
        )
    load_migration(spec)
    _import("megatron.core", "megatron-core")
    upstream.check("megatron-local-layers", "megatron-adam-step")
    upstream.require_applied()
    do_without_transformer_engine()


def do_without_transformer_engine() -> None:
    """Patch Megatron-core where TransformerEngine and Apex would have done it; a second call changes nothing."""
    from megatron.core.optimizer import distrib_optimizer

    from verl_hw_core.megatron import checkpoints, layer_spec

    if not has_transformer_engine():
        layer_spec.use_local_layers()
    if not distrib_optimizer.HAVE_APEX_OR_TE:
        checkpoints.mend_checkpoints()


def _is_installed(name: str) -> bool:
    """Whether a submodule can be found; its parent is imported, which for ``megatron`` is an empty namespace."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # no parent, or a stub without a spec in sys.modules
        return False


def _import(module: str, what: str) -> ModuleType:
    try:
        return import_package() if module == PACKAGE else importlib.import_module(module)
    except Exception as error:
        raise MegatronImportError(
            f"{what} is installed and fails while {module} is imported: {describe(error)}. Mend or remove the package "
            f"that is named there (for the traceback: python -c 'import {module}')"
        ) from error


def load_migration(spec: HardwareSpec) -> None:
    """Load the CUDA migration of a vendor whose device is not ``cuda``; a second call changes nothing.

    Raises:
        MegatronError: No module is known for this vendor.
        LoadOrderError: Megatron was imported first.
        MegatronImportError: The module fails while it is imported.
    """
    if spec.device_name == "cuda":
        return
    name = os.environ.get(MIGRATION_ENVVAR) or spec.cuda_migration
    if name is None:
        raise MegatronError(
            f"Megatron-core computes through torch.cuda, and no module is known that makes torch.cuda mean "
            f"torch.{spec.device_name} ({spec.display_name}). If your stack has one, name it in {MIGRATION_ENVVAR}; "
            "else train with strategy fsdp2"
        )
    order = list(sys.modules)
    first = next((module for module in order if _uses_cuda(module)), None)
    if first is not None and (name not in sys.modules or order.index(first) < order.index(name)):
        raise LoadOrderError(
            f"{name} must be imported before Megatron, and {first} came first{_imported_by(first)}. Import no part of "
            f"Megatron before the engine is built, or put `import {name}` before that import"
        )
    try:
        importlib.import_module(name)
    except Exception as error:
        raise MegatronImportError(
            f"{name}, the CUDA migration of {spec.display_name}, fails while it is imported: {describe(error)}. Mend "
            f"the vendor's installation (python -c 'import {name}'), or name another module in {MIGRATION_ENVVAR}"
        ) from error


def _uses_cuda(name: str) -> bool:
    """Whether a module belongs to a package of :data:`_CUDA_USERS`; a bare namespace (``megatron``) holds no code."""
    return name.partition(".")[0] in _CUDA_USERS and getattr(sys.modules[name], "__file__", None) is not None


def _imported_by(first: str) -> str:
    """Say which modules hold something of the package ``first``; those are who imported it."""
    package = first.partition(".")[0]
    holders = [
        name
        for name, module in sys.modules.copy().items()
        if name.partition(".")[0] != package and isinstance(module, ModuleType) and _holds(module, package)
    ]
    if not holders:
        return ""
    more = ", ..." if len(holders) > _IMPORTERS_SHOWN else ""
    return f" (imported by {', '.join(holders[:_IMPORTERS_SHOWN])}{more})"


def _holds(module: ModuleType, package: str) -> bool:
    return any(_home(value).partition(".")[0] == package for value in vars(module).copy().values())


def _home(value: Any) -> str:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return name if isinstance(name, str) else ""


def load_without_engine() -> None:
    """Load Megatron and mbridge for this process's device, in the order that it needs, as our engines do.

    Raises:
        MegatronError: Megatron cannot be had in this process, or verl chose a platform that is none of ours.
    """
    import verl.workers.engine  # noqa: F401 - registration puts verl's own import of megatron off, right there
    from verl.plugin.platform import get_platform

    from verl_hw_core.megatron import bridges
    from verl_hw_core.platform import AcceleratorPlatform

    platform = get_platform()
    if not isinstance(platform, AcceleratorPlatform):
        raise MegatronError(
            f"verl chose the platform {type(platform).__name__}, which is none of verl-hw's: see verl-hw detect"
        )
    load_engine(platform.spec, "MegatronEngineWithLMHead")
    bridges.require_bridge(vanilla=True)


class DeferredEngine:
    """Stands in ``verl.workers.engine`` for a Megatron engine that has not been imported."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise MegatronError(
            f"{type(self).__name__} is not imported: verl-hw imports verl's Megatron engine when one is built with "
            "EngineRegistry.new(model_type, 'megatron', ...)"
        )


def defer() -> None:
    """Keep ``verl.workers.engine`` from importing megatron; what is imported already stays."""
    for row, package in ((ROW, PACKAGE), (_ASCEND_ROW, _ASCEND_PACKAGE)):
        if package not in sys.modules:
            _put_placeholder(row, package)


def _put_placeholder(row: str, package: str) -> None:
    upstream.applies(row)(lambda: patches.replace_module(row, package, _placeholder(package)))()
    if package == PACKAGE and not any(isinstance(finder, _MegatronFirst) for finder in sys.meta_path):
        sys.meta_path.insert(0, _MegatronFirst())


class _MegatronFirst(importlib.abc.MetaPathFinder):
    """Finds nothing: loads Megatron in its order before a module of the placeholder's package is looked for."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        from verl_hw_core.platform import our_platform

        platform = our_platform() if name.startswith(f"{PACKAGE}.") and is_deferred() else None
        if platform is not None:
            # What is wrong with Megatron is said when an engine is built; an import alone works as without us.
            with suppress(MegatronError):
                _load_megatron(platform.spec)


def _placeholder(package: str) -> ModuleType:
    from verl.workers.engine.base import BaseEngine

    module = ModuleType(package, "Placeholder of verl-hw; see verl_hw_core.megatron.loading.")
    # Its modules are found where they are, so that a recipe can import one; the package itself is not run then.
    engines = sys.modules["verl.workers.engine"].__path__
    module.__path__ = [f"{folder}/{package.rpartition('.')[2]}" for folder in engines]

    def engine(name: str) -> Any:
        """Whatever verl imports from the package."""
        if name.startswith("__"):
            raise AttributeError(name)
        # An engine, since verl derives engines for other devices from it and registers them.
        return vars(module).setdefault(name, type(name, (DeferredEngine, BaseEngine), {"__module__": package}))

    vars(module)["__getattr__"] = engine
    return module


def is_deferred() -> bool:
    """Whether the placeholder is in force."""
    module = sys.modules.get(PACKAGE)
    return module is not None and module.__spec__ is None


def import_package() -> ModuleType:
    """Import verl's Megatron package now, leaving the user's environment as it is.

    Raises:
        Exception: Whatever the import raises.
    """
    deferred = is_deferred()
    upstream.restore(ROW)  # the next import finds verl's packages
    before = os.environ.get(_ARCH_LIST)
    try:
        module = importlib.import_module(PACKAGE)
    except BaseException:
        if deferred:
            defer()
        raise
    finally:
        if before is not None:
            os.environ[_ARCH_LIST] = before
    engines = sys.modules["verl.workers.engine"]
    for name, value in list(vars(engines).items()):
        if isinstance(value, type) and issubclass(value, DeferredEngine) and value.__module__ == PACKAGE:
            setattr(engines, name, getattr(module, name))
    return module
