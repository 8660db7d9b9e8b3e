# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Access to ``torch.<device>`` that survives what a vendor's module lacks.

verl asks the device module for about forty names; no vendor has them all, and several raise where CUDA returns a
plain answer. Here a missing or failing name gives the documented fallback and one log line per process.
"""

import importlib
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

from verl_hw_core.errors import VendorRuntimeError
from verl_hw_core.facts.hardware import HardwareSpec

logger = logging.getLogger("verl_hw_core")

_said: set[tuple[str, str]] = set()


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
        raise VendorRuntimeError(
            f"{spec.display_name} needs torch.{spec.device_name}, which torch {torch.__version__} does not have"
            f"{_where_it_comes_from(spec)}. Install the vendor's torch stack, or correct VERL_PLATFORM"
        )
    found: ModuleType = module
    return found


def call(
    spec: HardwareSpec,
    name: str,
    *args: Any,
    fallback: Any = None,
    convert: Callable[[Any], Any] | None = None,
    loud: bool = True,
    module: Any = None,
) -> Any:
    """Call ``torch.<device>.<name>(*args)``, or return ``fallback`` with one log line.

    Args:
        spec: The vendor's facts.
        name: Name in the device module, dots allowed (``"memory._set_allocator_settings"``).
        *args: Arguments of the call.
        fallback: Result when the name is missing, the call raises, or its answer cannot be converted.
        convert: What makes the answer what verl expects.
        loud: Whether the line is a WARNING (it changes what a run does) or DEBUG (it does not).
        module: Where to look instead of the device module.

    Returns:
        The call's result, or ``fallback``.
    """
    path = f"torch.{name}" if module is not None else f"torch.{spec.device_name}.{name}"
    try:
        answer = resolve(module if module is not None else device_module(spec), name)(*args)
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


def _where_it_comes_from(spec: HardwareSpec) -> str:
    return f" even after importing {spec.extension_module}" if spec.extension_module else ""
