# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Calls into the simulated stack that leave no other trace, kept so that tests can see them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """One recorded call.

    Attributes:
        name: Dotted name below the device module, as ``"cnpx.range_push"``.
        arguments: Its positional arguments.
    """

    name: str
    arguments: tuple[Any, ...] = ()


_calls: list[Call] = []


def record(name: str, *arguments: Any) -> None:
    """Remember one call."""
    _calls.append(Call(name, arguments))


def recorded_calls() -> tuple[Call, ...]:
    """All calls since the start or the last :func:`clear_recorded_calls`, oldest first."""
    return tuple(_calls)


def clear_recorded_calls() -> None:
    """Forget all calls."""
    _calls.clear()
