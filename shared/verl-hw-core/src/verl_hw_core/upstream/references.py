# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How replaced functions travel to other processes (Ray workers): as a reference, never as a copy.

cloudpickle sends a function by reference if its module gives that very function under its name, and copies it with
all its globals otherwise. A replacement and the function that it replaces have one name between them, so one of them
would be copied, process groups and all. While a replacement is in force, both are therefore named as attributes of
this module, which looks up what the receiving process has.
"""

import functools
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any, Literal

from verl_hw_core.upstream.ledger import LEDGER

_names_before: dict[FunctionType, tuple[str, str]] = {}
_twins: dict[tuple[FunctionType, FunctionType], Any] = {}


@dataclass(frozen=True)
class Reference:
    """A function in somebody else's module, before or after a ledger row's replacement.

    Attributes:
        row: Id of the ledger row.
        which: ``own`` (without the replacement), or ``current`` (what is in force in the process that asks).
        module: Name of the module that holds the function, or its class.
        path: Attribute path there.
    """

    row: str
    which: Literal["own", "current"]
    module: str
    path: str

    @property
    def name(self) -> str:
        """Its name in this module; without dots, at which pickle would take it apart."""
        return f"{self.row} {self.which} {self.module}:{self.path}".replace(".", "/")

    @classmethod
    def of(cls, name: str) -> "Reference":
        """Read :attr:`name`.

        Raises:
            ValueError: It is no such name.
        """
        row, which, target = name.replace("/", ".").split(" ")
        module, path = target.split(":")
        if which not in ("own", "current"):
            raise ValueError(name)
        return cls(row, which, module, path)  # type: ignore[arg-type]

    def place(self) -> tuple[Any, str]:
        """Return the module or class that holds the function, and its name there. Imports the module."""
        owner: Any = importlib.import_module(self.module)
        *parents, name = self.path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        return owner, name


def __getattr__(name: str) -> Any:
    """Return the function that a reference means in this process."""
    from verl_hw_core.upstream import patches

    try:
        reference = Reference.of(name)
    except ValueError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    owner, attribute = reference.place()
    if reference.which == "own":
        return _function(patches.original(reference.row, owner, attribute))
    if patches.is_replaced(reference.row, owner, attribute):
        return _function(vars(owner)[attribute])
    return _late(reference)


def travelling(row: str, owner: Any, name: str, own: Any, replacement: Any) -> Any:
    """Name a replacement and what it replaces for their travels; other things than functions stay as they are.

    Args:
        row: Id of the ledger row.
        owner: Module or class that holds the name.
        name: The name.
        own: What is replaced.
        replacement: What takes its place.

    Returns:
        The replacement, or a twin of it where it must keep its own name.
    """
    module, path = _place_name(owner, name)
    before, after = _function(own), _function(replacement)
    if not module or not isinstance(before, FunctionType) or not isinstance(after, FunctionType):
        return replacement
    if (before, after) in _twins:  # one function under two names has one replacement
        return _twins[before, after]
    _names_before.setdefault(before, (before.__module__, before.__qualname__))
    _rename(before, Reference(row, "own", module, path))
    if getattr(before, "__wrapped__", None) is after:  # a wrapper undone: its inside is what bears the name
        return replacement
    twin = _twin(after)
    _rename(twin, Reference(row, "current", module, path))
    _twins[before, after] = type(replacement)(twin) if isinstance(replacement, staticmethod | classmethod) else twin
    return _twins[before, after]


def home_again(own: Any) -> None:
    """Give a function that was replaced its own name back."""
    function = _function(own)
    if isinstance(function, FunctionType) and function in _names_before:
        function.__module__, function.__qualname__ = _names_before.pop(function)
        for pair in [pair for pair in _twins if pair[0] is function]:
            del _twins[pair]


def _place_name(owner: Any, name: str) -> tuple[str, str]:
    if isinstance(owner, ModuleType):
        return owner.__name__, name
    return (owner.__module__, f"{owner.__qualname__}.{name}") if isinstance(owner, type) else ("", name)


def _function(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


def _rename(function: FunctionType, reference: Reference) -> None:
    function.__module__, function.__qualname__ = __name__, reference.name


def _twin(function: FunctionType) -> FunctionType:
    """Return a function that does the same under a name of its own."""
    code, names = function.__code__, function.__globals__
    twin = FunctionType(code, names, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__doc__ = function.__doc__
    twin.__annotations__ = function.__annotations__
    vars(twin).update(vars(function))
    return twin


@functools.cache
def _late(reference: Reference) -> Callable[..., Any]:
    """A function that is looked up when it is called: the process may apply the row between now and then."""

    def late(*args: Any, **kwargs: Any) -> Any:
        owner, name = reference.place()
        _apply_where_chosen(reference.row)
        return _function(vars(owner)[name])(*args, **kwargs)

    late.__name__ = reference.path.rpartition(".")[2]
    late.__module__, late.__qualname__ = __name__, reference.name
    return late


def _apply_where_chosen(row: str) -> None:
    """Apply a row that was in force in the sending process, if this process runs on one of our platforms too."""
    manager = sys.modules.get("verl.plugin.platform.platform_manager")
    platform = getattr(manager, "_current_platform", None)
    (target,) = (known.applied_by for known in LEDGER if known.id == row)
    if platform is None or not target:
        return
    from verl_hw_core.platform import AcceleratorPlatform

    if isinstance(platform, AcceleratorPlatform):
        module, _, function = target.partition(":")
        getattr(importlib.import_module(module), function)()
