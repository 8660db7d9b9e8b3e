# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Probe: is a card of this vendor on the PCI bus?"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from verl_hw_core.detection.evidence import Evidence, Verdict
from verl_hw_core.detection.probe_root import below
from verl_hw_core.facts.hardware import Traces

MAX_DEVICES = 4096
"""How many entries of one sysfs folder are looked at."""

# Base classes of PCI: display controller, processing accelerator. Others (bridges, network) are no accelerators.
_ACCELERATOR_CLASSES = ("0x03", "0x12")

PciVendors = dict[str, str]
"""Vendor id -> where a card of that vendor was seen."""


def read_pci_vendors(root: Path) -> PciVendors:
    """Reads which vendors' display controllers and accelerators sysfs shows below ``root``."""
    vendors: PciVendors = {}
    for device in _entries(below(root, "/sys/bus/pci/devices")):
        if _read(device / "class").startswith(_ACCELERATOR_CLASSES):
            vendors.setdefault(_read(device / "vendor"), f"PCI device {device.name}")
    for card in _entries(below(root, "/sys/class/drm")):
        vendors.setdefault(_read(card / "device" / "vendor"), f"DRM device {card.name}")
    vendors.pop("", None)
    return vendors


def pci(traces: Traces, vendors: PciVendors) -> Evidence | None:
    """Looks the vendor's PCI id up among those seen; None when the spec names no id."""
    if traces.pci_vendor is None:
        return None
    kind = "pci" if traces.pci_identifies_vendor else "pci_hint"
    place = vendors.get(traces.pci_vendor)
    if place is None:
        return Evidence(
            kind, Verdict.ABSENT, f"no display controller or accelerator with vendor id {traces.pci_vendor}"
        )
    why = f"{place} has vendor id {traces.pci_vendor}"
    if not traces.pci_identifies_vendor:
        why += ", which other hardware of that vendor has too"
    return Evidence(kind, Verdict.PRESENT, why)


def _entries(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(islice(folder.iterdir(), MAX_DEVICES))
    except OSError:
        return  # no such bus here, as in many containers


def _read(file: Path) -> str:
    try:
        # Not blocking: in a folder that stands in for sysfs this may be a pipe, which nobody writes to.
        with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as stream:
            return (stream.read(64) or b"").decode("ascii", "replace").strip().lower()
    except OSError:
        return ""
