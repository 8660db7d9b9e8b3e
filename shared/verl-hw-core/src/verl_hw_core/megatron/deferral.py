# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's Megatron package is imported when a Megatron engine is built, not with every ``verl.workers.engine``.

verl imports it together with all its engines. That is too early: a vendor's CUDA migration has to come before megatron,
and in a process without a Megatron engine it must not come at all. verl's package also deletes a
``TORCH_CUDA_ARCH_LIST`` of the user's where torch.cuda has no device.
"""

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from verl_hw_core.errors import MegatronError
from verl_hw_core.upstream import patches

ROW = "megatron-import"
"""Ledger row of the placeholders."""

PACKAGE = "verl.workers.engine.megatron"
# Ascend's engines, which import megatron as well (verl 0.9.0); no device of ours uses them.
_ASCEND_PACKAGE = "verl.workers.engine.mindspeed"
_ARCH_LIST = "TORCH_CUDA_ARCH_LIST"


class DeferredEngine:
    """Stands in ``verl.workers.engine`` for a Megatron engine that has not been imported."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise MegatronError(
            f"{type(self).__name__} is not imported: verl-hw imports verl's Megatron engine when one is built with "
            "EngineRegistry.new(model_type, 'megatron', ...)"
        )


@patches.applies(ROW)
def defer() -> None:
    """Keep ``verl.workers.engine`` from importing megatron; what is imported already stays."""
    for package in (PACKAGE, _ASCEND_PACKAGE):
        if package not in sys.modules:
            patches.replace_module(ROW, package, _placeholder(package))


def _placeholder(package: str) -> ModuleType:
    from verl.workers.engine.base import BaseEngine

    module = ModuleType(package, "Placeholder of verl-hw; see verl_hw_core.megatron.deferral.")

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


def restore() -> None:
    """Take the placeholders away, so that the next import finds verl's packages."""
    patches.restore(ROW)


def import_package() -> ModuleType:
    """Import verl's Megatron package now, leaving the user's environment as it is.

    Raises:
        Exception: Whatever the import raises.
    """
    deferred = is_deferred()
    restore()
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
