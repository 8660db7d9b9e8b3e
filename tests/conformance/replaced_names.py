# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which names of other packages are replaced in this process: as the registry has it, and as a look around finds it.

Import it first: what the registry takes back again is noted from then on.
"""

import importlib
import sys
from types import FunctionType

from verl_hw_core import upstream
from verl_hw_core.upstream import LEDGER
from verl_hw_core.upstream.installed_state import applicable
from verl_hw_core.upstream.patches import replaced

PACKAGES = ("verl", "torch", "ray", "transformers", "tensordict", "megatron", "mbridge")
# What we hook and the engines alone do not import.
HOOKED = (
    "verl.checkpoint_engine", "verl.single_controller.ray.base", "verl.trainer.constants_ppo",
    "verl.workers.config.rollout", "verl.workers.rollout.base", "verl.workers.rollout.replica",
)  # fmt: skip

_taken_back: set[str] = set()
_restore = upstream.restore


def _noting(row: str) -> None:
    _taken_back.update(replaced().get(row, ()))
    _restore(row)


upstream.restore = upstream.patches.restore = _noting


def look() -> dict[str, list[str]]:
    """Return the names that the registry has replaced since the start, and those whose value is ours."""
    for module in HOOKED:
        importlib.import_module(module)
    recorded = _taken_back.union(*replaced().values())
    return {"recorded": sorted(recorded), "found": sorted(_found(recorded))}


def _found(recorded: set[str]) -> set[str]:
    """Names of other packages that hold something of ours; further names of what is recorded do not count."""
    values = {}
    for name, module in list(sys.modules.items()):
        whole = ":".join(name.rsplit(".", 1)) in recorded  # a module that is replaced as a whole
        if name.partition(".")[0] in PACKAGES and not whole:
            for owner, path in _owners(name, module):
                for attribute, value in list(vars(owner).items()):
                    inside = value.__func__ if isinstance(value, staticmethod | classmethod) else value
                    if _is_ours(inside):
                        values[f"{name}:{path}{attribute}"] = inside
    known = [value for name, value in values.items() if name in recorded]
    return {name for name, value in values.items() if name in recorded or not any(value is one for one in known)}


def _owners(name, module):
    yield module, ""
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == name:
            yield value, f"{value.__qualname__}."


def _is_ours(value) -> bool:
    if not isinstance(value, FunctionType | type) or not str(value.__module__).startswith("verl_hw_"):
        return False
    # The simulator stands for the vendor's stack; what was replaced keeps its place in whoever bound it before.
    return not value.__module__.startswith("verl_hw_sim") and not value.__qualname__.startswith("own ")


def declared(*conditions: str) -> set[str]:
    """Return the targets of the rows that are always applied, and of those under the conditions."""
    rows = [row for row in LEDGER if row.only_where in ("", *conditions)]
    return {name for row in rows for name in applicable(row.targets)}
