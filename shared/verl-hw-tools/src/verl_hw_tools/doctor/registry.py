# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The doctor's checks: what one is, and where they come from."""

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from verl_hw_tools.doctor.model import Finding
from verl_hw_tools.doctor.programs.unexecuted import leave_out
from verl_hw_tools.errors import CheckDefinitionError
from verl_hw_tools.installed import PLUGIN_GROUP

if TYPE_CHECKING:
    from verl_hw_tools.doctor.facts import Facts

ENTRY_POINT_GROUP = "verl_hw.doctor"
"""Group of other packages' checks. An entry's name is the first part of its checks' ids, its value their module."""

VERL, FULL, RAY = "verl", "full", "ray"
"""What a check needs to be run before: plugins loaded, verl itself imported, a Ray cluster asked."""

CheckFunction = Callable[["Facts"], Finding]

_ID = re.compile(r"[a-z][a-z0-9_]*\.[a-z0-9_]+")
_OURS = "verl_hw_tools.doctor.checks"
# In the order in which they are shown; a module's checks keep the order of their definition.
_MODULES = ("detection", "python", "packages", "wheels", "plugins", "environment", "verl", "runtime", "ray", "system")


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        id: ``"<group>.<name>"``.
        title: What it shows when it passes.
        why: Why it matters, one sentence.
        run: The check itself.
        needs: What must have run before: :data:`VERL`, :data:`FULL`, :data:`RAY`. For the core's own checks.
        vendors: Platform keys that it is for; empty for all.
        doc: Where to read on.
    """

    id: str
    title: str
    why: str
    run: CheckFunction
    needs: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()
    doc: str = ""

    @property
    def group(self) -> str:
        """The group it belongs to."""
        return self.id.partition(".")[0]


_checks: dict[str, Check] = {}


def check(
    check_id: str,
    *,
    why: str,
    needs: tuple[str, ...] = (),
    vendors: tuple[str, ...] = (),
    doc: str | None = None,
) -> Callable[[CheckFunction], CheckFunction]:
    """Make a function a check; the first line of its docstring is the title. See :class:`Check` for the arguments.

    Raises:
        CheckDefinitionError: The id is malformed or taken, or ``why`` or ``doc`` is no text.
    """
    if not isinstance(check_id, str) or not _ID.fullmatch(check_id):
        raise CheckDefinitionError(f"a check's id is <group>.<name> in lower case, got {check_id!r}")
    if not isinstance(why, str) or not isinstance(doc, str | None):
        raise CheckDefinitionError(f"{check_id}: why and doc are text, got {why!r} and {doc!r}")

    def decorate(function: CheckFunction) -> CheckFunction:
        known = _checks.get(check_id)
        if known is not None and known.run.__module__ != function.__module__:
            raise CheckDefinitionError(f"there are two checks with the id {check_id!r}: rename one")
        title = (function.__doc__ or check_id).strip().splitlines()[0].rstrip(".")
        # The anchor that GitHub gives a heading with that text.
        place = f"docs/doctor.md#{check_id.replace('.', '')}" if doc is None else doc
        _checks[check_id] = Check(
            id=check_id, title=title, why=why, run=function, needs=needs, vendors=vendors, doc=place
        )
        return function

    return decorate


def builtin_checks() -> tuple[Check, ...]:
    """Return the core's own checks, in order."""
    modules = [importlib.import_module(f"{_OURS}.{name}").__name__ for name in _MODULES]
    return tuple(found for module in modules for found in _checks.values() if found.run.__module__ == module)


def foreign_groups() -> dict[str, EntryPoint]:
    """Return the groups of other packages by name, sorted; nothing is imported."""
    ours = {name.id.partition(".")[0] for name in builtin_checks()}
    points = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name)
    return {point.name: point for point in points if point.name not in ours}


def load_group(point: EntryPoint) -> tuple[Check, ...]:
    """Import a foreign group's module, in a process of its own, and return its checks.

    A vendor wheel's package is not executed for it, since that would register the wheel and import verl.

    Raises:
        CheckDefinitionError: The module defines no check of this group.
    """
    package = point.module.partition(".")[0]
    if package != point.module and package in {one.module for one in entry_points(group=PLUGIN_GROUP)}:
        leave_out(package)
    importlib.import_module(point.module)
    found = tuple(one for one in _checks.values() if one.group == point.name)
    if not found:
        raise CheckDefinitionError(f"{point.module} defines no check whose id begins with {point.name + '.'!r}")
    return found
