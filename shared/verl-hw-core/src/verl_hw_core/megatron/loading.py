# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""From "a Megatron engine is wanted" to verl's engine class, with one error for each thing that may be missing.

The vendor's module that makes ``torch.cuda`` mean its device is loaded before megatron, or not at all: Megatron-core
binds names of torch.cuda while it is imported (the RNG functions, the tensor classes), so a migration that comes later
reaches half of it.
"""

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.errors import LoadOrderError, MegatronError, MegatronImportError, MegatronMissingError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.load_report import describe
from verl_hw_core.megatron import deferral
from verl_hw_core.megatron.settings import has_transformer_engine

INSTALL = "pip install --no-deps megatron-core mbridge einops"
"""``--no-deps``: what megatron-core requires includes torch, which must stay the vendor's."""

MIGRATION_ENVVAR = "VERL_HW_CUDA_MIGRATION"
"""Names another module than the vendor wheel does."""

# Packages that bind names of torch.cuda while they are imported.
_CUDA_USERS = ("megatron", "mbridge", "transformer_engine", "apex")
_IMPORTERS_SHOWN = 3


def load_engine(spec: HardwareSpec, name: str) -> type[Any]:
    """Import verl's Megatron engine for a vendor, in the order that the vendor needs.

    Args:
        spec: The vendor's facts.
        name: Class in ``verl.workers.engine.megatron``.

    Raises:
        MegatronMissingError: megatron-core is not installed.
        MegatronImportError: Part of it, or of the vendor's stack, is installed and does not import.
        LoadOrderError: Megatron was imported before the vendor's CUDA migration.
        MegatronError: The vendor has no CUDA migration.
        UpstreamPatchError: verl or megatron-core lacks a name without which numbers would be wrong.
    """
    if not _is_installed("megatron.core"):
        raise MegatronMissingError(
            f"strategy=megatron needs megatron-core, which is not installed. Install the vendor's build of it, or: "
            f"{INSTALL}"
        )
    load_migration(spec)
    _import("megatron.core", "megatron-core")
    # Before verl binds names of the modules that are patched.
    upstream.check("megatron-local-layers", "megatron-adam-step")
    upstream.require_applied()
    do_without_transformer_engine()
    package = _import(deferral.PACKAGE, "verl's Megatron engine")
    upstream.check("megatron-engine")
    upstream.require_applied()
    engine: type[Any] = getattr(package, name)
    return engine


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
        return deferral.import_package() if module == deferral.PACKAGE else importlib.import_module(module)
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
