# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m verl_hw_tools.doctor.programs.verl_load FOLDER DEADLINE DEPTH VENDOR``: load verl and look.

DEPTH is ``full``, or ``plugins``: load verl's plugins without verl's own package, which costs several seconds.
VENDOR is the platform key of the vendor whose runtime is started, or ``-``.
"""

import importlib
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from verl_hw_tools.doctor.programs import engines, plugins, vendor_runtime
from verl_hw_tools.doctor.programs.unexecuted import leave_out
from verl_hw_tools.doctor.stages import Stages
from verl_hw_tools.doctor.versions import installed_version


def main(folder: Path, deadline: float, depth: str, vendor: str) -> None:
    """Run the stages, each whatever became of the one before unless it needs it."""
    stages = Stages(folder, deadline)
    warnings.simplefilter("ignore")
    if not stages.attempt("torch", _import_torch):
        return
    plugins.tell_each_load(stages)
    loaded = find_spec("verl") is not None and stages.attempt("verl", _full if depth == "full" else _plugins_only)
    if loaded:
        stages.attempt("platforms", plugins.platforms)
    if vendor != "-":
        stages.attempt("runtime", lambda: vendor_runtime.look(vendor))
    if loaded and depth == "full":
        _look_deeper(stages)
    stages.attempt("reports", plugins.reports)


def _look_deeper(stages: Stages) -> None:
    rooms: dict[str, Callable[[], Any]] = {
        "platform": plugins.platform,
        "engines": engines.matrix,
        "transfer": engines.checkpoint_engines,
        "ledger": engines.ledger_rows,
    }
    for name, look in rooms.items():
        stages.attempt(name, look)
    for name in ("megatron.core", "transformer_engine"):
        if _is_there(name):
            stages.attempt(name, partial(_import, name))


def _import(name: str) -> str:
    return importlib.import_module(name).__name__


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # the package above it is missing or broken, which its own stage says
        return False


def _import_torch() -> dict[str, Any]:
    import torch

    return {"version": torch.__version__, "file": torch.__file__}


def _full() -> dict[str, Any]:
    verl = importlib.import_module("verl")
    return {"version": getattr(verl, "__version__", None), "file": verl.__file__, "full": True}


def _plugins_only() -> dict[str, Any]:
    """Load the plugins as verl does, over verl's interface for them, which needs torch alone of what verl imports."""
    leave_out("verl")
    importlib.import_module("verl.plugin.platform.platform_manager")
    plugins.load_all()
    return {"version": installed_version("verl"), "file": sys.modules["verl"].__file__, "full": False}


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4])
