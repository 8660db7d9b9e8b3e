# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a ledger row finds in the installed packages: their versions, and the names that it declares."""

import functools
import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from packaging.requirements import Requirement

from verl_hw_core.upstream.ledger import LedgerRow

_FILE = Path(__file__).parents[1] / "tested_versions.json"
_DISTRIBUTIONS = {"megatron": "megatron-core"}


@functools.cache
def bounds() -> dict[str, str]:
    """Return the versions that verl-hw is made for, as ``{"verl": ">=0.9,<0.11"}``."""
    rows = json.loads(_FILE.read_text(encoding="utf-8"))["packages"]
    return {
        row["name"]: row.get("patches")
        or ",".join(sign + row[key] for sign, key in ((">=", "floor"), ("<", "ceiling")) if row[key])
        for row in rows
    }


def distribution(name: str) -> str:
    """Return the distribution that a declared name belongs to."""
    package = name.partition(":")[0].partition(".")[0]
    return _DISTRIBUTIONS.get(package, package)


def requirements(row: LedgerRow) -> tuple[str, ...]:
    """Return the versions in which the row's names were read, as ``("verl>=0.9,<0.11",)``."""
    found = dict.fromkeys(distribution(name) for name in (*row.targets, *row.reads))
    return tuple(name + bounds().get(name, "") for name in found)


def state(row: LedgerRow) -> str:
    """Say whether the installed versions are ones that the row was read in."""
    return "; ".join(_state(requirement) for requirement in requirements(row))


def _state(wanted: str) -> str:
    requirement = Requirement(wanted)
    version = installed_version(requirement.name)
    if version is None:
        return f"{requirement.name} is not installed"
    known = _contains(requirement, version)
    return f"{requirement.name} {version}" + ("" if known else f": not tried, the row was read in {wanted}")


def installed_version(name: str) -> str | None:
    """Return the version of an installed distribution, or of an imported module without one, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        version = getattr(sys.modules.get(name), "__version__", None)
        return None if version is None else str(version)


def _contains(requirement: Requirement, version: str) -> bool:
    # A vendor's build carries a local part (2.9.1+mlu1.29), and its pre-releases count as the version they lead to.
    return requirement.specifier.contains(version.partition("+")[0], prereleases=True)


def applicable(names: tuple[str, ...]) -> Iterator[str]:
    """Yield declared names without the versions behind them, those of other versions than the installed left out."""
    for name in names:
        bare, _, versions = name.partition("; ")
        version = installed_version(distribution(bare)) if versions else None
        if version is None or _contains(Requirement(versions), version):
            yield bare


def place(name: str) -> tuple[Any, str]:
    """Return what holds a declared name, and its attribute there. Imports the module.

    Raises:
        ImportError: There is no such module.
        AttributeError: There is nothing that could hold the name.
    """
    module, _, path = name.partition(":")
    owner: Any = importlib.import_module(module)
    *parents, attribute = path.replace("()", "").split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, attribute


def missing(row: LedgerRow) -> tuple[str, ...]:
    """Return the names that the row declares and the installed packages do not have."""
    absent = [name for name in applicable(row.targets) if not _exists(name, target=True, unset=row.may_be_absent)]
    return (*absent, *(name for name in applicable(row.reads) if not _exists(name, unset="()" in name)))


def _exists(name: str, *, unset: bool, target: bool = False) -> bool:
    """Whether a name is there; one that may be unset is there if the owner's code has it."""
    try:
        owner, attribute = place(name)
    except (ImportError, AttributeError):
        return False
    if target and isinstance(owner, type):  # not what it inherits
        there = attribute in vars(owner)
    else:
        there = hasattr(owner, attribute) or _is_submodule(owner, attribute)
    return there or (unset and attribute in _names_in_code(owner))


def _is_submodule(owner: Any, name: str) -> bool:
    if not hasattr(owner, "__path__"):
        return False
    try:
        return importlib.util.find_spec(f"{owner.__name__}.{name}") is not None
    except ImportError:
        return False
    except ValueError:  # our placeholder, which has no spec
        return True


def _names_in_code(owner: Any) -> set[str]:
    """Names that the functions of a module or class use."""
    found: set[str] = set()
    for value in vars(owner).values():
        function = getattr(value, "__func__", value)
        if isinstance(function, FunctionType):
            found.update(function.__code__.co_names)
        elif isinstance(owner, ModuleType) and isinstance(value, type) and value.__module__ == owner.__name__:
            found |= _names_in_code(value)
    return found
