# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's training engines, its checkpoint engines, and the places where verl-hw changed something here."""

import importlib
import warnings
from typing import Any

from verl_hw_tools.doctor.programs.plugins import owner_of


def matrix() -> dict[str, Any]:
    """For every model type and backend: the engine that this process would take, or why there is none.

    The rows come from verl's table, and from the warnings with which verl passes over engines that do not import.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        importlib.import_module("verl.workers.engine")
    from verl.workers.engine.base import EngineRegistry

    rows = []
    for model_type, backends in sorted(EngineRegistry._engines.items()):
        for backend, registered in sorted(backends.items()):
            rows.append({"model_type": model_type, "backend": backend, **_choice(EngineRegistry, model_type, backend)})
            rows[-1]["registered"] = sorted(_key(key) for key in registered)
    said = [str(one.message) for one in caught if "engine is not available" in str(one.message)]
    return {"rows": rows, "not_imported": said}


def checkpoint_engines() -> dict[str, Any]:
    """verl's checkpoint engines (weight transfer): the registered ones, and why others are not."""
    base = importlib.import_module("verl.checkpoint_engine").CheckpointEngineRegistry
    errors = {name: f"{type(error).__name__}: {error}" for name, error in base._import_errors.items()}
    return {"registered": sorted(base._registry), "import_errors": errors}


def ledger_rows() -> list[str]:
    """Ids of the ledger's rows in force here."""
    from verl_hw_core.upstream.patches import in_force

    return list(in_force())


def _choice(registry: Any, model_type: str, backend: str) -> dict[str, str]:
    try:
        found = registry.get_engine_cls(model_type, backend)
    except (AssertionError, ValueError) as error:
        return {"engine": "", "distribution": "", "why_not": str(error)}
    return {
        "engine": f"{found.__module__}.{found.__qualname__}",
        "distribution": owner_of(found.__module__),
        "why_not": "",
    }


def _key(key: Any) -> str:
    return "/".join(str(part) for part in key) if isinstance(key, tuple) else str(key)
