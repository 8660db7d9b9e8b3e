# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What other packages tell this process: the vendor wheels that have registered, and calls of entry points.

The table of wheels is the one that platform and engines share.
"""

import logging
from dataclasses import dataclass
from importlib.metadata import entry_points

from verl_hw_core.facts.hardware import HardwareSpec

logger = logging.getLogger("verl_hw_core")


@dataclass(frozen=True)
class Vendor:
    """A registered vendor wheel.

    Attributes:
        spec: The vendor's facts.
        platform: ``"module:Class"`` of its platform.
        engines: Module whose import registers its training engines.
    """

    spec: HardwareSpec
    platform: str
    engines: str


_vendors: dict[str, Vendor] = {}
_called: set[tuple[str, str]] = set()


def add(vendor: Vendor) -> None:
    """Add or replace the vendor under its key."""
    _vendors[vendor.spec.key] = vendor


def get(key: str) -> Vendor | None:
    """Return the vendor registered under ``key``."""
    return _vendors.get(key)


def specs() -> tuple[HardwareSpec, ...]:
    """Return the specs of all registered vendors, sorted by key so that no load order shows."""
    return tuple(_vendors[key].spec for key in sorted(_vendors))


def call_entry_points(group: str, what: str) -> None:
    """Call each object of a group, once in a process; one that fails is left out with a warning.

    Args:
        group: The entry-point group; its objects are called without arguments.
        what: What they declare, for the warning.
    """
    for entry_point in sorted(entry_points(group=group), key=lambda point: point.name):
        if (group, entry_point.value) in _called:
            continue
        _called.add((group, entry_point.value))
        try:
            entry_point.load()()
        except Exception as error:  # noqa: BLE001 - another package's failure must not stop a run that needs none of it
            logger.warning(
                "%s of entry point %r (%s) are left out: %s: %s",
                *(what, entry_point.name, entry_point.value, type(error).__name__, error),
            )
