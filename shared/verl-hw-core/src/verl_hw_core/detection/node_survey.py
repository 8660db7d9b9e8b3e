# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""One pass over all vendors: cheap probes first, management tools only where those did not decide."""

import logging
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from verl_hw_core.detection.evidence import Evidence, VendorFinding, Verdict, weigh
from verl_hw_core.detection.lookup import probe_root
from verl_hw_core.detection.probes import PciVendors, device_nodes, packages, pci, read_pci_vendors
from verl_hw_core.detection.result_cache import forget_results
from verl_hw_core.detection.smi import smi
from verl_hw_core.detection.torch_build import runtime, torch_build
from verl_hw_core.errors import InvalidSpecError
from verl_hw_core.facts.hardware import HardwareSpec

logger = logging.getLogger("verl_hw_core")


@dataclass(frozen=True)
class Survey:
    """What the probes found on this node.

    Attributes:
        findings: Each vendor's finding by spec key.
        chosen: Key of the vendor to use, or None when none is present for certain.
        conflict: Keys of all vendors that look present, the chosen one first, when there is more than one.
        seconds: How long the survey took.
    """

    findings: Mapping[str, VendorFinding]
    chosen: str | None
    conflict: tuple[str, ...]
    seconds: float

    def conflict_message(self) -> str:
        """Returns the warning to log once when several vendors look present; empty when there is no conflict."""
        if not self.conflict:
            return ""
        reasons = "; ".join(f"{key} ({self._reason(key)})" for key in self.conflict)
        return (
            f"Several accelerators look present: {reasons}. Using {self.chosen}."
            f" Set VERL_PLATFORM to one of {', '.join(self.conflict)} to choose and to silence this warning."
        )

    def _reason(self, key: str) -> str:
        best = self.findings[key].best
        return best.why if best is not None else "no reason recorded"


_surveys: dict[Hashable, Survey] = {}


def survey(specs: Sequence[HardwareSpec], *, thorough: bool = False, deadline_s: float = 2.0) -> Survey:
    """Surveys this node for the given vendors.

    Nothing is imported, no runtime is started, no environment variable is written, and no visibility variable is
    read: every process of a node gets the same answer. The result is kept for the life of the process.

    Args:
        specs: Vendors to look for; their order does not matter.
        thorough: Run every management tool, also where the answer is clear without.
        deadline_s: Seconds that all management tools together may take.

    Raises:
        InvalidSpecError: Two specs have the same key.
        ProbeRootError: ``VERL_HW_PROBE_ROOT`` is not a directory.
    """
    ordered = tuple(sorted(specs, key=lambda spec: spec.key))
    keys = [spec.key for spec in ordered]
    if len(set(keys)) < len(keys):
        raise InvalidSpecError(f"survey: every spec must have its own key, got {keys}")
    root = probe_root()
    inputs = (ordered, thorough, deadline_s, root, os.environ.get("PATH"), tuple(sys.path), _torch_state(ordered))
    if inputs not in _surveys:
        _surveys[inputs] = _look(ordered, root, thorough, deadline_s)
    return _surveys[inputs]


def forget() -> None:
    """Forgets all results that this process holds; for tests. The results shared on the node stay."""
    _surveys.clear()
    forget_results()


def _look(specs: tuple[HardwareSpec, ...], root: Path, thorough: bool, deadline_s: float) -> Survey:
    started = time.monotonic()
    pci_vendors = read_pci_vendors(root) if any(spec.traces.pci_vendor for spec in specs) else {}
    cheap = {spec.key: tuple(_cheap_evidence(spec, root, pci_vendors)) for spec in specs}
    to_ask = [spec for spec in specs if thorough or weigh(spec.key, cheap[spec.key]).verdict is not Verdict.PRESENT]
    asked = smi(to_ask, root, deadline_s, thorough=thorough)
    findings = {spec.key: weigh(spec.key, cheap[spec.key] + asked.get(spec.key, ())) for spec in specs}
    found = [spec for spec in specs if findings[spec.key].verdict is Verdict.PRESENT]
    found.sort(key=lambda spec: (-findings[spec.key].strength, spec.detection_rank, spec.key))
    present = tuple(spec.key for spec in found)
    result = Survey(
        findings=MappingProxyType(findings),
        chosen=present[0] if present else None,
        conflict=present if len(present) > 1 else (),
        seconds=time.monotonic() - started,
    )
    logger.debug("Accelerator survey: chosen %s in %.3f s", result.chosen, result.seconds)
    return result


def _cheap_evidence(spec: HardwareSpec, root: Path, pci_vendors: PciVendors) -> Iterator[Evidence]:
    probes: tuple[Callable[[], Evidence | None], ...] = (
        lambda: torch_build(spec.traces),
        lambda: runtime(spec.device_name),
        lambda: packages(spec.traces),
        lambda: device_nodes(spec.traces, root),
        lambda: pci(spec.traces, pci_vendors),
    )
    for probe in probes:
        started = time.monotonic()
        evidence = probe()
        if evidence is not None:
            yield replace(evidence, seconds=time.monotonic() - started)


def _torch_state(specs: Sequence[HardwareSpec]) -> Hashable:
    # A vendor extension that is imported after the first survey adds evidence.
    return "torch" in sys.modules, tuple(spec.key for spec in specs if runtime(spec.device_name) is not None)
