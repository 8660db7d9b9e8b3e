# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The vendor's module that makes ``torch.cuda`` mean its device: loaded before megatron, or not at all.

Megatron-core binds names of torch.cuda while it is imported (the RNG functions, the tensor classes). A migration that
comes later reaches half of it.
"""

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from verl_hw_core.errors import LoadOrderError, MegatronError, MegatronImportError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.load_report import describe

MIGRATION_ENVVAR = "VERL_HW_CUDA_MIGRATION"
"""Names another module than the vendor wheel does."""

# Packages that bind names of torch.cuda while they are imported.
_CUDA_USERS = ("megatron", "mbridge", "transformer_engine", "apex")
_IMPORTERS_SHOWN = 3


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
