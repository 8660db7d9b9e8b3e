# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The vendor wheels that this process has registered: the one table that platform and engines share."""

from dataclasses import dataclass

from verl_hw_core.facts.hardware import HardwareSpec


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


def add(vendor: Vendor) -> None:
    """Add or replace the vendor under its key."""
    _vendors[vendor.spec.key] = vendor


def get(key: str) -> Vendor | None:
    """Return the vendor registered under ``key``."""
    return _vendors.get(key)


def specs() -> tuple[HardwareSpec, ...]:
    """Return the specs of all registered vendors, sorted by key so that no load order shows."""
    return tuple(_vendors[key].spec for key in sorted(_vendors))
