# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Replacing a name in somebody else's module: once, by ledger row, and so that it can be put back."""

from collections.abc import Callable
from typing import Any

from verl_hw_core.upstream import references
from verl_hw_core.upstream.ledger import LEDGER

_ROWS = frozenset(row.id for row in LEDGER)
_replaced: dict[tuple[str, int, str], tuple[Any, Any]] = {}
_kernels: dict[tuple[str, str, str], Any] = {}


def replace(row: str, owner: Any, name: str, replacement: Any) -> None:
    """Set ``owner.name`` to ``replacement``; a name that the row has replaced already is left alone.

    Functions are pickled as references meanwhile (:mod:`verl_hw_core.upstream.references`), for which a twin takes the
    place of a replacement that has a name elsewhere.

    Args:
        row: Id of the ledger row that says why.
        owner: Module or class that holds the name.
        name: The name.
        replacement: What to put there, a ``staticmethod`` or ``classmethod`` object included.

    Raises:
        LookupError: The ledger has no such row.
    """
    _require_row(row, f"{owner!r}.{name}")
    key = (row, id(owner), name)
    if key not in _replaced:
        own = vars(owner)[name]
        _replaced[key] = (owner, own)
        setattr(owner, name, references.travelling(row, owner, name, own, replacement))


def add_kernel(row: str, operator: str, device: str, kernel: Callable[..., Any]) -> None:
    """Register a kernel of one of torch's operators for a device; what the row has registered already stays.

    Args:
        row: Id of the ledger row that says why.
        operator: Its name, as ``"aten::topk"``.
        device: torch device type.
        kernel: What computes it there.

    Raises:
        LookupError: The ledger has no such row.
    """
    import torch

    _require_row(row, operator)
    key = (row, operator, device)
    if key not in _kernels:
        namespace, _, _ = operator.partition("::")
        # torch takes the kernel back when the library is gone.
        _kernels[key] = torch.library.Library(namespace, "FRAGMENT")
        torch.library.impl(operator, device, kernel, lib=_kernels[key])


def is_replaced(row: str, owner: Any, name: str) -> bool:
    """Whether the row's replacement of ``owner.name`` is in force."""
    return (row, id(owner), name) in _replaced


def original(row: str, owner: Any, name: str) -> Any:
    """Return what ``owner.name`` is without the row's replacement."""
    _, own = _replaced.get((row, id(owner), name), (owner, None))
    return own if own is not None else vars(owner)[name]


def restore(row: str) -> None:
    """Put back everything that the row has replaced."""
    for key in [key for key in _replaced if key[0] == row]:
        owner, own = _replaced.pop(key)
        setattr(owner, key[2], own)
        references.home_again(own)
    for kernel in [key for key in _kernels if key[0] == row]:
        del _kernels[kernel]


def in_force() -> tuple[str, ...]:
    """Return the ids of the rows that have replaced something in this process, in the ledger's order."""
    rows = {row for row, _, _ in (*_replaced, *_kernels)}
    return tuple(row.id for row in LEDGER if row.id in rows)


def _require_row(row: str, what: str) -> None:
    if row not in _ROWS:
        raise LookupError(f"upstream ledger has no row {row!r}: add it before changing {what}")
