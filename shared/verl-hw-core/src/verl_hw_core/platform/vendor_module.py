# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What verl asks of ``torch.<device>``, and access to it that survives what a vendor's module lacks.

verl asks the device module for about forty names; no vendor has them all, and several raise where CUDA returns a
plain answer. Here a missing or failing name gives the documented fallback and one log line per process.

The names, with what stops working where one is lacking, are read from verl 0.9.0 and 0.9.1 (every attribute of
``get_torch_device()``); a test reads the installed verl again and fails when the list has grown.
"""

import importlib
import logging
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from verl_hw_core.errors import VendorRuntimeError
from verl_hw_core.facts.hardware import HardwareSpec

ESSENTIAL: dict[str, str] = {
    "is_available": "everything: verl takes the device for absent",
    "device_count": "everything: workers cannot be placed",
    "current_device": "everything: tensors go to device 0",
    "set_device": "everything: all workers land on device 0",
    "synchronize": "timings and copies to the host",
    "empty_cache": "memory between rollout and training",
    "get_rng_state": "checkpoints: saving fails",
    "set_rng_state": "checkpoints: resuming fails",
}
"""Names without which training does not start or cannot be resumed."""

OPTIONAL: dict[str, str] = {
    "Event": "fused cross-entropy kernel",
    "Stream": "activation offload, fused cross-entropy kernel",
    "current_stream": "activation offload, fused cross-entropy kernel",
    "stream": "activation offload, fused cross-entropy kernel",
    "get_device_name": "model FLOPs utilisation in the metrics",
    "get_device_properties": "memory report",
    "ipc_collect": "device IPC in weight transfer; host memory is used instead",
    "max_memory_allocated": "memory metrics of a training step",
    "max_memory_reserved": "memory metrics of a training step",
    "mem_get_info": "memory log, delta weight sync",
    "memory": "memory snapshots",
    "memory_allocated": "memory log",
    "memory_reserved": "memory log",
    "reset_accumulated_memory_stats": "aggressive memory release",
    "reset_peak_memory_stats": "aggressive memory release",
    "set_per_process_memory_fraction": "memory limit of a process",
}
"""Names whose absence costs one feature."""

_BEFORE_TORCHS = 7  # priority in torch's list of serializers, whose own begin at 10
_DEVICE_SLOT = 6  # of the arguments of an IPC handle

logger = logging.getLogger("verl_hw_core")

_said: set[tuple[str, str]] = set()
_own_device: dict[str, ModuleType] = {}


def device_module(spec: HardwareSpec) -> ModuleType:
    """Return ``torch.<device>``, importing the vendor's extension first where torch did not load it.

    Raises:
        VendorRuntimeError: The extension is missing or fails to import, or torch has no such device.
    """
    import torch

    module = getattr(torch, spec.device_name, None)
    if module is None and spec.extension_module is not None:
        # torch loads it by itself only through an autoload entry point, which TORCH_DEVICE_BACKEND_AUTOLOAD=0 disables.
        _import_extension(spec, spec.extension_module)
        module = getattr(torch, spec.device_name, None)
    if module is None:
        where = f" even after importing {spec.extension_module}" if spec.extension_module else ""
        raise VendorRuntimeError(
            f"{spec.display_name} needs torch.{spec.device_name}, which torch {torch.__version__} does not have"
            f"{where}. Install the vendor's torch stack, or correct VERL_PLATFORM"
        )
    found: ModuleType = module
    name_own_device_by_type(spec.device_name, found)
    return found


def _own_device_tag(storage: Any) -> str | None:
    """Return the tag of a storage on a vendor's current device, without an ordinal."""
    kind, index = storage.device.type, storage.device.index
    return kind if kind in _own_device and index == _own_device[kind].current_device() else None


def name_own_device_by_type(device: str, module: ModuleType) -> None:
    """Have a serialized tensor of a process's own device say ``mlu``, which means the device of whoever reads it.

    Each worker of a job has one device. Under a mask of its own it is ordinal 0 for all of them; here it has an ordinal
    of its own, and what workers return to the driver would lie on as many devices. A tensor that is not on the current
    device keeps its ordinal. Torch itself reads a tag without an ordinal so.
    """
    import torch

    if not hasattr(torch, "serialization"):
        return  # half an installation, at which the doctor looks
    if not _own_device:  # once a process: torch cannot order two entries of one priority
        torch.serialization.register_package(_BEFORE_TORCHS, _own_device_tag, lambda _storage, _location: None)
    _own_device[device] = module


def call(
    spec: HardwareSpec,
    name: str,
    *args: Any,
    fallback: Any = None,
    convert: Callable[[Any], Any] | None = None,
    loud: bool = True,
    of_torch: bool = False,
) -> Any:
    """Call ``torch.<device>.<name>(*args)``, or return ``fallback`` with one log line.

    Args:
        spec: The vendor's facts.
        name: Name in the device module, dots allowed (``"memory._set_allocator_settings"``).
        *args: Arguments of the call.
        fallback: Result when the name is missing, the call raises, or its answer cannot be converted.
        convert: What makes the answer what verl expects.
        loud: Whether the line is a WARNING (it changes what a run does) or DEBUG (it does not).
        of_torch: Whether to look in torch itself instead of the device module.
    """
    path = f"torch.{name}" if of_torch else f"torch.{spec.device_name}.{name}"
    try:
        answer = resolve(importlib.import_module("torch") if of_torch else device_module(spec), name)(*args)
        return answer if convert is None else convert(answer)
    except Exception as error:  # noqa: BLE001 - a vendor module may raise anything; callers document the fallback
        text = f"{path}: {type(error).__name__}: {error}; going on with {fallback!r}"
        say_once(spec, text, logging.WARNING if loud else logging.DEBUG, topic=path)
        return fallback


def resolve(root: Any, dotted: str) -> Callable[..., Any]:
    """Return the callable at ``dotted`` below ``root``.

    Raises:
        AttributeError: A part of the path is missing; the text names the whole path.
    """
    found = root
    for part in dotted.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise AttributeError(f"{getattr(root, '__name__', root)} has no {dotted}")
    target: Callable[..., Any] = found
    return target


def say_once(spec: HardwareSpec, text: str, level: int, *, topic: str) -> None:
    """Log ``text`` at ``level`` the first time that this process meets ``topic`` for this vendor."""
    if (spec.key, topic) not in _said:
        _said.add((spec.key, topic))
        logger.log(level, "%s: %s", spec.display_name, text)


def _import_extension(spec: HardwareSpec, extension: str) -> None:
    try:
        importlib.import_module(extension)
    except Exception as error:
        # A half-installed vendor stack raises more than ImportError (OSError for a missing library, for one).
        raise VendorRuntimeError(
            f"{spec.display_name} needs the module {extension}, whose import failed with "
            f"{type(error).__name__}: {error}. Install or repair the vendor's torch stack"
        ) from error


@cache
def ipc_fits_verl(spec: HardwareSpec) -> bool:
    """Whether a device's IPC handle fits what verl's weight transfer does with it.

    verl (``workers/rollout/vllm_rollout/bucketed_weight_transfer.py``) sends ``reduce_tensor(buffer)``, overwrites
    argument 6 with the receiver's device and calls ``torch.<device>.ipc_collect()``. A wrong yes corrupts weights or
    crashes; a wrong no costs a copy through host memory. So it is tried: a small device tensor is shared and the handle
    looked at. False, with one log line, when anything is off.
    """
    try:
        _check_handle(spec)
    except Exception as error:  # noqa: BLE001 - a vendor's reduce_tensor may raise anything; host memory always works
        say_once(spec, f"no device IPC, weights go through host memory: {error}", logging.INFO, topic="ipc")
        return False
    return True


def _check_handle(spec: HardwareSpec) -> None:
    import torch
    from torch.multiprocessing.reductions import reduce_tensor

    module = device_module(spec)
    resolve(module, "ipc_collect")
    index = module.current_device()
    _, args = reduce_tensor(torch.zeros(1, device=f"{spec.device_name}:{index}"))
    slot = args[_DEVICE_SLOT] if len(args) > _DEVICE_SLOT else None
    if type(slot) is not int or slot != index:  # False and 0.0 equal ordinal 0
        raise TypeError(f"argument {_DEVICE_SLOT} of the handle is not the device ordinal {index}")
