# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The functions that cloudpickle could not send to other processes (Ray workers) by a name of their own.

cloudpickle sends a function as a reference if its module gives that very function under its name, and copies it with
all its globals otherwise, process groups and all. Our replacements are functions of our modules and need nothing
(:func:`verl_hw_core.upstream.patches.replaces`). Two kinds are no such functions, and are named as attributes of this
module, which looks up what the receiving process has (docs/architecture.md):

- what was replaced: while its name gives the replacement, it has no name;
- replacements that packages declare while the program runs: a closure, or a function that the worker may not have.
"""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from verl_hw_core.upstream import patches

_OWN, _STAND_IN = "own", "stand-in"
_names_before: dict[FunctionType, tuple[str, str]] = {}


def __getattr__(name: str) -> Any:
    """Return the function that is meant in this process."""
    try:
        which, row, target = name.replace("/", ".").split(" ")
    except ValueError:
        which = ""
    if which == _OWN:
        return patches.own(row, target)
    if which == _STAND_IN:
        return stand_in(row, target)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _name(function: Any, which: str, row: str, target: str) -> None:
    # Without dots, at which pickle would take the name apart.
    function.__module__, function.__qualname__ = __name__, f"{which} {row} {target}".replace(".", "/")


def send_away(row: str, target: str, own: Any) -> None:
    """Name a function that is about to be replaced."""
    if isinstance(own, FunctionType) and own not in _names_before:
        _names_before[own] = own.__module__, own.__qualname__
        _name(own, _OWN, row, target)


def take_home(own: Any) -> None:
    """Give a function that is back in its place its name back."""
    if isinstance(own, FunctionType) and own in _names_before:
        own.__module__, own.__qualname__ = _names_before.pop(own)


@functools.cache
def stand_in(row: str, target: str) -> Callable[..., Any]:
    """Return the function that stands for whatever is in force under a name in this process when it is called."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return patches.current(row, target)(*args, **kwargs)

    function.__name__ = target.rpartition(".")[2]
    _name(function, _STAND_IN, row, target)
    return function
