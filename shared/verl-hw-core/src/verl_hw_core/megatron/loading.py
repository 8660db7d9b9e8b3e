# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""From "a Megatron engine is wanted" to verl's engine class, with one error for each thing that may be missing."""

import importlib
import importlib.util
from types import ModuleType
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.errors import MegatronImportError, MegatronMissingError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.load_report import describe
from verl_hw_core.megatron import deferral, migration

INSTALL = "pip install --no-deps megatron-core mbridge einops"
"""``--no-deps``: what megatron-core requires includes torch, which must stay the vendor's."""


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
    migration.load_migration(spec)
    _import("megatron.core", "megatron-core")
    # Before verl binds names of the modules that are mended.
    from verl_hw_core.megatron import mends

    upstream.check("megatron-local-layers", "megatron-adam-step")
    upstream.require_applied()
    mends.apply()
    package = _import(deferral.PACKAGE, "verl's Megatron engine")
    upstream.check("megatron-engine")
    upstream.require_applied()
    engine: type[Any] = getattr(package, name)
    return engine


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
