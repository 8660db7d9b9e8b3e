# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Put ``torch.<device>`` together: a new module, or the stock one with its functions replaced."""

import sys
from types import ModuleType
from typing import Any

import torch

from verl_hw_sim.device_api import DeviceFunctions, MemoryFunctions, RandomFunctions, public_functions
from verl_hw_sim.profiles import Profile
from verl_hw_sim.records import record
from verl_hw_sim.streams import StreamFunctions, make_classes

_FUNCTION_GROUPS = (DeviceFunctions, MemoryFunctions, RandomFunctions, StreamFunctions)


def _all_names(native: ModuleType, profile: Profile) -> dict[str, Any]:
    names = make_classes(native, profile)
    for group in _FUNCTION_GROUPS:
        names.update(public_functions(group(native, profile)))
    return names


def _submodule(parent: str, name: str, contents: dict[str, Any]) -> ModuleType:
    module = ModuleType(f"{parent}.{name}")
    vars(module).update(contents)
    sys.modules[module.__name__] = module
    return module


def _allocator_settings(settings: str) -> None:
    record("memory._set_allocator_settings", settings)


def _range_functions(name: str) -> dict[str, Any]:
    """``range_push`` and the like, as NVTX has them: each returns the depth, and each call is recorded."""
    depth = 0

    def range_push(message: str) -> int:
        nonlocal depth
        record(f"{name}.range_push", message)
        depth += 1
        return depth - 1

    def range_pop() -> int:
        nonlocal depth
        record(f"{name}.range_pop")
        depth -= 1
        return depth

    def mark(message: str) -> None:
        record(f"{name}.mark", message)

    return {"range_push": range_push, "range_pop": range_pop, "mark": mark}


def _add_default_generators(module: ModuleType, native: ModuleType) -> None:
    """Make ``default_generators`` on demand: to make them is to start the runtime, which freezes the mask."""
    vars(module).pop("default_generators", None)

    def module_getattr(name: str) -> Any:
        if name == "default_generators":
            return tuple(native.default_generator(ordinal) for ordinal in range(native.device_count()))
        if name == "_initialized":
            return native.started()
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    vars(module).pop("_initialized", None)
    vars(module)["__getattr__"] = module_getattr


def create_device_module(native: ModuleType, profile: Profile) -> ModuleType:
    """``torch.<device>`` of a vendor whose device stock torch does not know.

    Args:
        native: The compiled half.
        profile: The vendor.
    """
    name = f"torch.{profile.device_name}"
    module = ModuleType(name, f"Simulated {profile.vendor} device module of verl-hw-sim.")
    module.__path__ = []
    contents = {key: value for key, value in _all_names(native, profile).items() if key not in profile.absent}
    vars(module).update(contents)
    memory = {key: contents[key] for key in public_functions(MemoryFunctions(native, profile)) if key in contents}
    if profile.allocator_settings:
        memory["_set_allocator_settings"] = _allocator_settings
    vars(module)["memory"] = _submodule(name, "memory", memory)
    random = {key: contents[key] for key in public_functions(RandomFunctions(native, profile)) if key in contents}
    vars(module)["random"] = _submodule(name, "random", random)
    if profile.range_module is not None:
        ranges = _submodule(name, profile.range_module, _range_functions(profile.range_module))
        vars(module)[profile.range_module] = ranges
    _add_default_generators(module, native)
    return module


def take_over_device_module(native: ModuleType, profile: Profile) -> ModuleType:
    """Stock ``torch.xpu`` or ``torch.cuda`` with its functions replaced. A name it lacks it goes on lacking.

    Args:
        native: The compiled half.
        profile: The vendor.
    """
    module: ModuleType = getattr(torch, profile.device_name)
    ours = _all_names(native, profile)
    places = [module]
    for submodule in ("memory", "random", "streams"):
        stock = sys.modules.get(f"{module.__name__}.{submodule}")
        if stock is not None:
            places.append(stock)
    for place in places:
        for name in set(vars(place)) & set(ours):
            setattr(place, name, ours[name])
    for name in profile.absent:
        vars(module).pop(name, None)
    if profile.kind == "cuda":
        _take_over_cuda(module)
    _add_default_generators(module, native)
    return module


def _take_over_cuda(module: ModuleType) -> None:
    # Without CUDA these raise or lack their C half.
    vars(module.memory)["_set_allocator_settings"] = _allocator_settings
    for name, function in _range_functions("nvtx").items():
        setattr(module.nvtx, name, function)
    vars(module.nccl)["version"] = lambda: (2, 16, 5)  # torch logs it when a collective fails
    vars(module.profiler)["start"] = lambda: record("profiler.start")
    vars(module.profiler)["stop"] = lambda: record("profiler.stop")
