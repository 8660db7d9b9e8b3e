# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Replacing a name in somebody else's module: once, by ledger row, and so that it can be put back."""

from typing import Any

from verl_hw_core.upstream.ledger import LEDGER

_ROWS = frozenset(row.id for row in LEDGER)
_replaced: dict[tuple[str, int, str], tuple[Any, Any]] = {}


def replace(row: str, owner: Any, name: str, replacement: Any) -> None:
    """Set ``owner.name`` to ``replacement``; a name that the row has replaced already is left alone.

    Args:
        row: Id of the ledger row that says why.
        owner: Module or class that holds the name.
        name: The name.
        replacement: What to put there, a ``staticmethod`` or ``classmethod`` object included.

    Raises:
        LookupError: The ledger has no such row.
    """
    if row not in _ROWS:
        raise LookupError(f"upstream ledger has no row {row!r}: add it before changing {owner!r}.{name}")
    key = (row, id(owner), name)
    if key not in _replaced:
        _replaced[key] = (owner, vars(owner)[name])
        setattr(owner, name, replacement)


def original(row: str, owner: Any, name: str) -> Any:
    """Return what ``owner.name`` is without the row's replacement."""
    _, own = _replaced.get((row, id(owner), name), (owner, None))
    return own if own is not None else vars(owner)[name]


def restore(row: str) -> None:
    """Put back everything that the row has replaced."""
    for key in [key for key in _replaced if key[0] == row]:
        owner, own = _replaced.pop(key)
        setattr(owner, key[2], own)


def in_force() -> tuple[str, ...]:
    """Return the ids of the rows that have replaced something in this process, in the ledger's order."""
    rows = {row for row, _, _ in _replaced}
    return tuple(row.id for row in LEDGER if row.id in rows)
