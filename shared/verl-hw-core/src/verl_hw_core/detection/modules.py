# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Finds a top-level module without importing it, whatever state the import system is in."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from typing import Protocol


class _Finder(Protocol):
    def find_spec(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None: ...


@dataclass(frozen=True)
class Lookup:
    """Result of a search: the spec, if found, and what finders raised on the way."""

    spec: ModuleSpec | None
    problems: tuple[str, ...] = ()


def look_up(name: str) -> Lookup:
    """Asks the import system for a top-level module and imports nothing.

    ``importlib.util.find_spec`` will not do: it raises for a stub in ``sys.modules`` that has no ``__spec__``, and
    one finder that raises hides what the finders after it know.
    """
    imported = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(imported, ModuleSpec):
        return Lookup(imported)
    problems: list[str] = []
    for finder in list(sys.meta_path):
        if not hasattr(finder, "find_spec"):
            continue
        try:
            spec = _ask(finder, name)
        except Exception as error:  # noqa: BLE001 - a foreign finder may raise anything; it must not hide the others
            problems.append(f"finder {_name_of(finder)} raised {type(error).__name__}: {error}")
            continue
        if spec is not None and not _is_bare_folder(spec):
            return Lookup(spec, tuple(problems))
    return Lookup(None, tuple(problems))


def _ask(finder: _Finder, name: str) -> ModuleSpec | None:
    return finder.find_spec(name, None)


def _is_bare_folder(spec: ModuleSpec) -> bool:
    # A folder without code (a namespace package) is what a source checkout named like the package looks like
    # from its parent folder; it is not an installed package.
    return spec.origin is None and spec.submodule_search_locations is not None


def _name_of(finder: object) -> str:
    return finder.__name__ if isinstance(finder, type) else type(finder).__name__
