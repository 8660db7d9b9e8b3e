# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Probes of what a vendor's stack leaves on the machine: packages, device nodes, cards on the PCI bus."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from verl_hw_core.detection.evidence import Evidence, Verdict
from verl_hw_core.detection.lookup import below, look_up
from verl_hw_core.facts.hardware import Traces

MAX_DEVICES = 4096
"""How many entries of one sysfs folder are looked at."""

# Base classes of PCI: display controller, processing accelerator. Others (bridges, network) are no accelerators.
_ACCELERATOR_CLASSES = ("0x03", "0x12")

PciVendors = dict[str, str]
"""Vendor id -> where a card of that vendor was seen."""


def packages(traces: Traces) -> Evidence | None:
    """Looks the vendor's packages up without importing them; None when the spec names none."""
    if not traces.packages:
        return None
    problems: list[str] = []
    for name in traces.packages:
        if "." in name:
            problems.append(f"{name} is not a top-level name, so it cannot be looked up without importing")
            continue
        found = look_up(name)
        if found.spec is not None:
            return Evidence("packages", Verdict.PRESENT, f"package {name} is installed ({found.spec.origin})")
        problems += [f"{name}: {problem}" for problem in found.problems]
    if problems:
        return Evidence("packages", Verdict.UNKNOWN, "; ".join(problems))
    return Evidence("packages", Verdict.ABSENT, f"not installed: {', '.join(traces.packages)}")


def device_nodes(traces: Traces, root: Path) -> Evidence | None:
    """Looks for the vendor's device nodes below ``root``; None when the spec names none."""
    if not traces.device_nodes:
        return None
    found = sorted(
        f"/{match.relative_to(root)}"
        for pattern in traces.device_nodes
        for match in root.glob(pattern.lstrip("/"))
        # A container engine makes an empty folder of a bind mount whose source is missing on the host.
        if not match.is_dir()
    )
    if not found:
        return Evidence("device_nodes", Verdict.ABSENT, f"no {', '.join(traces.device_nodes)}")
    return Evidence(
        "device_nodes", Verdict.PRESENT, f"{found[0]} exists" + (f" (and {len(found) - 1} more)" if found[1:] else "")
    )


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
