# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The checks: what one is, the groups they are in, and where they come from.

A module of checks imports torch; it is loaded in the processes that run the checks and never in the command itself.
"""

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.errors import CheckDefinitionError

ENTRY_POINT_GROUP = "verl_hw.checks"

CheckFunction = Callable[[Bench], "str | None"]

_ID = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")


@dataclass(frozen=True)
class Group:
    """A group of checks.

    Attributes:
        name: First part of its checks' ids.
        title: What it is about.
        module: Where its checks are.
    """

    name: str
    title: str
    module: str


_OURS = "verl_hw_tools.conformance.checks"
BUILTIN_GROUPS: tuple[Group, ...] = (
    Group("module", "names of torch.<device> that verl asks for", f"{_OURS}.module"),
    Group("selection", "selecting devices", f"{_OURS}.selection"),
    Group("rng", "random numbers and their state", f"{_OURS}.rng"),
    Group("memory", "memory queries", f"{_OURS}.memory"),
    Group("streams", "streams, events, activation offload", f"{_OURS}.streams"),
    Group("dtypes", "data types and byte views", f"{_OURS}.dtypes"),
    Group("copies", "copies between host and device", f"{_OURS}.copies"),
    Group("operators", "operators, forward and backward, against float64 on the CPU", f"{_OURS}.operators"),
    Group("optimizer", "optimizer step and gradient clipping", f"{_OURS}.optimizer"),
    Group("nested", "nested jagged tensors", f"{_OURS}.nested"),
    Group("scaler", "fp16 loss scaling", f"{_OURS}.scaler"),
    Group("collectives", "collective communication", f"{_OURS}.collectives"),
    Group("training", "FSDP, FSDP2 and HSDP training against the CPU", f"{_OURS}.training"),
    Group("checkpoints", "sharded checkpoints", f"{_OURS}.checkpoints"),
    Group("platform", "verl's platform interface", f"{_OURS}.platform"),
)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        id: ``"<group>.<name>"``, more parts allowed.
        title: What it shows when it passes.
        blocks: What of verl does not work when it fails.
        run: The check itself, called in every process. Returning is passing; a string says something about the pass.
            :mod:`verl_hw_tools.conformance.verdicts` has the exceptions for everything else; any other exception is a
            failure.
        processes: Fewest processes that it needs; 1 runs in a single process, whatever the number of devices.
        vendors: Platform keys that it is for; empty for all.
    """

    id: str
    title: str
    blocks: str
    run: CheckFunction
    processes: int = 1
    vendors: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """The group it belongs to."""
        return self.id.partition(".")[0]


_checks: dict[str, Check] = {}


def add(new: Check) -> None:
    """Add a check.

    Raises:
        CheckDefinitionError: Its id is malformed or taken.
    """
    if not _ID.fullmatch(new.id):
        raise CheckDefinitionError(f"a check's id is <group>.<name> in lower case, got {new.id!r}")
    if new.id in _checks:
        raise CheckDefinitionError(f"there are two checks with the id {new.id!r}: rename one")
    _checks[new.id] = new


def check(
    check_id: str, *, blocks: str, processes: int = 1, vendors: tuple[str, ...] = ()
) -> Callable[[CheckFunction], CheckFunction]:
    """Make a function a check; the first line of its docstring is the title. See :class:`Check` for the arguments."""

    def decorate(function: CheckFunction) -> CheckFunction:
        title = (function.__doc__ or check_id).strip().splitlines()[0].rstrip(".")
        add(Check(id=check_id, title=title, blocks=blocks, run=function, processes=processes, vendors=vendors))
        return function

    return decorate


def groups() -> dict[str, Group]:
    """Return all groups by name: ours, then those of other packages, sorted."""
    found = {group.name: group for group in BUILTIN_GROUPS}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        if point.name not in found:
            provider = point.dist.metadata["Name"] if point.dist is not None else point.module
            found[point.name] = Group(point.name, f"checks of {provider}", point.module)
    return found


def load(group: Group) -> tuple[Check, ...]:
    """Import a group's module and return its checks, in the order of their definition.

    Raises:
        CheckDefinitionError: The module has no checks of this group, or defines them wrongly.
    """
    importlib.import_module(group.module)
    found = tuple(check for check in _checks.values() if check.group == group.name)
    if not found:
        raise CheckDefinitionError(f"{group.module} defines no check whose id begins with {group.name!r} and a dot")
    return found
