# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the probes report and how one vendor's evidence is weighed."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
    """Answer of a probe, or of all probes of one vendor together."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


# Kinds of evidence that decide, each with its strength. A kind that is not listed here is a hint: it is shown
# to people and decides nothing.
STRENGTH = {"torch_build": 5, "runtime": 4, "packages": 4, "device_nodes": 3, "smi": 2, "pci": 1}


@dataclass(frozen=True)
class Evidence:
    """The answer of one probe.

    Attributes:
        kind: Name of the probe: a key of ``STRENGTH``, or ``"smi_hint"``/``"pci_hint"``, which never decide.
        verdict: What the probe found. Unknown means that it could not tell, which is not a "no".
        why: What was looked at and what was seen, for people.
        seconds: How long the probe took.
    """

    kind: str
    verdict: Verdict
    why: str
    seconds: float = 0.0

    @property
    def decides(self) -> bool:
        """Whether this evidence counts towards the vendor's verdict; a hint does not."""
        return self.kind in STRENGTH


@dataclass(frozen=True)
class VendorFinding:
    """All evidence about one vendor on this node, and what it comes to.

    Attributes:
        spec_key: Key of the vendor's ``HardwareSpec``.
        verdict: The weighed answer.
        evidence: Every probe's answer, in the order in which they were asked.
        strength: Strength of the best evidence that the vendor is present (5 strongest, 1 weakest), 0 if there is none.
    """

    spec_key: str
    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()
    strength: int = 0

    @property
    def best(self) -> Evidence | None:
        """The strongest evidence that the vendor is present, or None."""
        found = [item for item in self.evidence if item.decides and item.verdict is Verdict.PRESENT]
        return max(found, key=lambda item: STRENGTH[item.kind], default=None)


def weigh(spec_key: str, evidence: Sequence[Evidence]) -> VendorFinding:
    """Weighs one vendor's evidence.

    Any single deciding piece that says "present" is enough. Without one, a deciding probe that could not tell
    makes the vendor unknown, because a tool that hangs says nothing about the hardware.
    """
    deciding = [item for item in evidence if item.decides]
    strength = max((STRENGTH[item.kind] for item in deciding if item.verdict is Verdict.PRESENT), default=0)
    if strength:
        verdict = Verdict.PRESENT
    elif any(item.verdict is Verdict.UNKNOWN for item in deciding):
        verdict = Verdict.UNKNOWN
    else:
        verdict = Verdict.ABSENT
    return VendorFinding(spec_key, verdict, tuple(evidence), strength)


def explain(finding: VendorFinding) -> str:
    """Describes a finding for logs: one line with the verdict, then one line per piece of evidence."""
    lines = [f"{finding.spec_key}: {finding.verdict.value}"]
    lines += [
        f"  {item.kind}: {item.verdict.value}{'' if item.decides else ' (hint only)'}, {item.why}"
        f" [{item.seconds * 1000:.1f} ms]"
        for item in finding.evidence
    ]
    if not finding.evidence:
        lines.append("  nothing to look for: the spec names no traces")
    return "\n".join(lines)
