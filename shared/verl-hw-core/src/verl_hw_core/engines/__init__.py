# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Training engines: what an accelerator needs on top of verl's own. Imports ``verl.workers``; see registration."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from verl.workers.engine.base import EngineRegistry

from verl_hw_core import upstream
from verl_hw_core.engines.fsdp import FSDPLanguageModelEngine, FSDPValueModelEngine
from verl_hw_core.engines.megatron import MegatronLanguageModelEngine, MegatronValueModelEngine
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform import our_platform
from verl_hw_core.platform.table import report_other_class, same_class
from verl_hw_core.training import padding

__all__ = [
    "FSDPLanguageModelEngine",
    "FSDPValueModelEngine",
    "MegatronLanguageModelEngine",
    "MegatronValueModelEngine",
    "register_engine",
]

EngineClass = TypeVar("EngineClass", bound=type[Any])


def register_engine(
    spec: HardwareSpec, *, model_type: str, backends: Sequence[str]
) -> Callable[[EngineClass], EngineClass]:
    """Class decorator: register an engine under the vendor's (device, vendor).

    verl asserts that a key is free. So that platform and engines always come from one package, here the same class
    again (a reload) replaces itself, and another package's class is replaced with a WARNING, since our platform is the
    one in force under this vendor's key.

    Args:
        spec: The vendor's facts.
        model_type: verl's model type, ``"language_model"`` or ``"value_model"``.
        backends: verl's engine backends (strategies) that the class serves.

    Returns:
        The decorator, which returns the class unchanged.
    """

    def decorate(engine_cls: EngineClass) -> EngineClass:
        for backend in backends:
            _make_room(spec, model_type, backend, engine_cls)
        EngineRegistry.register(
            model_type=model_type, backend=list(backends), device=spec.device_name, vendor=spec.vendor_name
        )(engine_cls)
        return engine_cls

    return decorate


def _make_room(spec: HardwareSpec, model_type: str, backend: str, engine_cls: type[Any]) -> None:
    if not upstream.check("engine-table"):
        return
    entries = EngineRegistry._engines.get(model_type, {}).get(backend, {})
    present = entries.pop((spec.device_name, spec.vendor_name), None)
    if present is not None and not same_class(present, engine_cls):
        fate = f"was registered for {spec.device_name}/{spec.vendor_name} and is replaced"
        report_other_class(spec, f"registering the {backend} engine for {model_type}", present, fate)


# verl.workers is loaded, so the platform is chosen; another vendor's run is left alone.
if our_platform() is not None:
    padding.replace_helpers()
