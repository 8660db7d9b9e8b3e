# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which vendor's hardware is here, and what speaks for it."""

from verl_hw_core.detection import Evidence, VendorFinding, Verdict
from verl_hw_core.platform.table import PLATFORM_ENVVAR, requested_platform
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.model import Finding, fail, ok, skip, warn
from verl_hw_tools.doctor.registry import check

_TOOLS = ("smi", "smi_hint")


@check("detection.vendor", why="verl trains on the platform that wins here; the wrong one looks like missing hardware")
def vendor(facts: Facts) -> Finding:
    """Exactly one installed vendor is present."""
    if not facts.wheels:
        return skip("no vendor wheel is installed, so nothing is looked for")
    evidence = "\n".join(_lines(facts.survey.findings[spec.key]) for spec in facts.specs)
    conflict = facts.survey.conflict
    if conflict and not requested_platform():
        return warn(
            facts.survey.conflict_message(),
            expected="one vendor, or VERL_PLATFORM to choose among several",
            mend=f"export {PLATFORM_ENVVAR}={conflict[0]}   # or {', '.join(conflict[1:])}",
            details=evidence,
        )
    if facts.choice.vendor is not None:
        return ok(f"{facts.choice.vendor}: {facts.choice.because}", details=evidence)
    unknown = [key for key, found in facts.survey.findings.items() if found.verdict is Verdict.UNKNOWN]
    if unknown and not requested_platform():
        doubts = [item.why for key in unknown for item in _doubts(facts.survey.findings[key])]
        return warn(
            f"none is present for certain; in doubt: {', '.join(unknown)} ({'; '.join(doubts)})",
            expected="an answer from the driver or its tool",
            mend=f"export {PLATFORM_ENVVAR}={unknown[0]}   # if you have it; and repair its management tool",
            details=evidence,
        )
    return Finding(status=skip("").status, observed=facts.choice.because, details=evidence)


@check("detection.tools", why="verl's own platforms ask such tools too; one that hangs delays every process by seconds")
def tools(facts: Facts) -> Finding:
    """Management tools answer."""
    bad = [
        item
        for found in facts.survey.findings.values()
        for item in found.evidence
        if item.kind in _TOOLS and item.verdict is Verdict.UNKNOWN
    ]
    if bad:
        return warn(
            "\n".join(item.why for item in bad),
            expected="exit code 0 within two seconds",
            mend=f"run it by hand and repair the driver or its tool: {'; '.join(map(_command, bad))}",
        )
    answered = [
        item.why
        for found in facts.survey.findings.values()
        for item in found.evidence
        if item.kind in _TOOLS and item.verdict is Verdict.PRESENT
    ]
    return ok("; ".join(answered)) if answered else skip("no management tool of an installed vendor is here")


@check("detection.driver", why="a card without its device nodes cannot be opened by any process")
def driver(facts: Facts) -> Finding:
    """A card on the PCI bus has its driver's device nodes."""
    seen = []
    for spec in facts.specs:
        by_kind = {item.kind: item for item in facts.survey.findings[spec.key].evidence}
        card, nodes = by_kind.get("pci"), by_kind.get("device_nodes")
        if card is None or card.verdict is not Verdict.PRESENT or nodes is None:
            continue
        seen.append(f"{spec.key}: {nodes.why}")
        if nodes.verdict is Verdict.ABSENT:
            return fail(
                f"{card.why}, but {nodes.why}",
                expected=f"device nodes of the {spec.display_name} driver",
                mend="in a container: start it with --device (or --privileged); else: load the vendor's kernel driver",
            )
    return ok("; ".join(seen)) if seen else skip("no card of a vendor whose id is told by the bus")


def _doubts(found: VendorFinding) -> list[Evidence]:
    return [item for item in found.evidence if item.decides and item.verdict is Verdict.UNKNOWN]


def _command(item: Evidence) -> str:
    return item.why.partition(" gave ")[0].partition(" exited ")[0].partition(" was ")[0].partition(" is there")[0]


def _lines(found: VendorFinding) -> str:
    hints = {True: "", False: " (a hint, decides nothing)"}
    lines = [f"  {item.kind}: {item.verdict.value}, {item.why}{hints[item.decides]}" for item in found.evidence]
    return "\n".join([f"{found.spec_key}: {found.verdict.value}", *lines])
