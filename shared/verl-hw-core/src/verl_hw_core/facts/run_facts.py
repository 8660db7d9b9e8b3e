# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a training process really runs on, written by that process itself when asked to.

A parent that launches training sets ``VERL_HW_RUN_FACTS=<file>``; every engine then appends one JSON line to that
file once it is initialized. Without the variable nothing happens. Imports nothing heavy.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verl_hw_core.errors import VisibleDevicesError

RUN_FACTS_ENV = "VERL_HW_RUN_FACTS"


def record_engine(engine: Any) -> None:
    """Append one JSON line about a verl engine after ``initialize()``, if ``VERL_HW_RUN_FACTS`` names a file."""
    path = os.environ.get(RUN_FACTS_ENV)
    if path:
        append_line(Path(path), engine_facts(engine))


def engine_facts(engine: Any) -> dict[str, Any]:
    """Facts of an initialized engine, as far as this process can tell; what it cannot tell is None."""
    # The caller is an engine, so these are loaded; looking them up keeps this module free of heavy imports.
    torch = sys.modules.get("torch")
    plugin = sys.modules.get("verl.plugin.platform") or sys.modules.get("verl.plugin.platform.platform_manager")
    platform = plugin.get_platform() if plugin is not None else None
    parameter = _first_parameter(engine)
    config = getattr(engine, "engine_config", None)
    return {
        "pid": os.getpid(),
        "rank": _int_env("RANK"),
        "world_size": _int_env("WORLD_SIZE"),
        "platform": _text(getattr(platform, "vendor_name", None)),
        "platform_class": None if platform is None else _class_name(platform),
        "device": _text(getattr(platform, "device_name", None)),
        "parameter_device": _text(getattr(parameter, "device", None)),
        "current_device": _current_device(platform),
        "card": _card(platform),
        "parameter_type": None if parameter is None else _class_name(parameter),
        "engine": _class_name(engine),
        "strategy": _text(getattr(config, "strategy", None)),
        "ccl_backend": None if platform is None else _text(platform.communication_backend_name()),
        "torch": _text(getattr(torch, "__version__", None)),
        "simulator": os.environ.get("VERL_HW_SIM") or None,
    }


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Append one JSON line in a single write, so that lines of several processes never mix."""
    line = (json.dumps(record, sort_keys=True) + "\n").encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def read_facts(path: Path) -> list[dict[str, Any]]:
    """Read the lines written so far, by rank; an unfinished last line is left out."""
    if not path.exists():
        return []
    *lines, _unfinished = path.read_text(encoding="utf-8").split("\n")
    return sorted((json.loads(line) for line in lines if line), key=lambda fact: fact.get("rank") or 0)


def device_of(fact: Mapping[str, Any]) -> str | None:
    """Return where an engine computes: the device of its parameters, or the process's when they wait in host memory."""
    device = fact.get("parameter_device")
    offloaded = device == "cpu" and fact.get("device") not in (None, "cpu")
    return fact.get("current_device") if offloaded else device


def _current_device(platform: Any) -> str | None:
    if platform is None:
        return None
    current = platform.current_device()
    return f"{platform.device_name}:{current}" if isinstance(current, int) else str(current)


def _card(platform: Any) -> str | None:
    """Name of the card behind the current device: two processes may each call another card their device 0."""
    try:
        return None if platform is None else str(platform.get_device_uuid(platform.current_device()))
    except VisibleDevicesError:
        return None


def _first_parameter(engine: Any) -> Any:
    module: Any = getattr(engine, "module", None)
    # Megatron keeps a list of virtual pipeline chunks there.
    chunks = module if isinstance(module, list) else [module]
    return next((parameter for chunk in chunks if chunk is not None for parameter in chunk.parameters()), None)


def _class_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _int_env(name: str) -> int | None:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else None
