# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Looking things up without side effects: a path below the probe root, a module without its import.

The probe root is the file system's, or a folder that stands in for it.
"""

import os
import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path

from verl_hw_core.errors import ProbeRootError

PROBE_ROOT_ENVVAR = "VERL_HW_PROBE_ROOT"


def probe_root() -> Path:
    """Returns the folder below which device nodes, sysfs and tool directories are looked up.

    Raises:
        ProbeRootError: ``VERL_HW_PROBE_ROOT`` is set to something that is not a directory.
    """
    value = os.environ.get(PROBE_ROOT_ENVVAR, "")
    if not value:
        return Path("/")
    root = Path(value)
    if not root.is_dir():
        raise ProbeRootError(
            f"{PROBE_ROOT_ENVVAR}={value!r} must name a directory that stands in for '/', but there is none;"
            f" create it, or unset {PROBE_ROOT_ENVVAR} to look at the real machine"
        )
    return root.resolve()


def below(root: Path, absolute: str) -> Path:
    """Returns the place of an absolute path below ``root``."""
    return root / absolute.lstrip("/")


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
            spec = finder.find_spec(name, None)
        except Exception as error:  # noqa: BLE001 - a foreign finder may raise anything; it must not hide the others
            problems.append(f"finder {_name_of(finder)} raised {type(error).__name__}: {error}")
            continue
        if spec is not None and not _is_bare_folder(spec):
            return Lookup(spec, tuple(problems))
    return Lookup(None, tuple(problems))


def _is_bare_folder(spec: ModuleSpec) -> bool:
    # A folder without code (a namespace package) is what a source checkout named like the package looks like
    # from its parent folder; it is not an installed package.
    return spec.origin is None and spec.submodule_search_locations is not None


def _name_of(finder: object) -> str:
    return finder.__name__ if isinstance(finder, type) else type(finder).__name__
