# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Probe: is a package installed that only this vendor's stack provides?"""

from verl_hw_core.detection.evidence import Evidence, Verdict
from verl_hw_core.detection.modules import look_up
from verl_hw_core.facts.hardware import Traces

KIND = "packages"


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
            return Evidence(KIND, Verdict.PRESENT, f"package {name} is installed ({found.spec.origin})")
        problems += [f"{name}: {problem}" for problem in found.problems]
    if problems:
        return Evidence(KIND, Verdict.UNKNOWN, "; ".join(problems))
    return Evidence(KIND, Verdict.ABSENT, f"not installed: {', '.join(traces.packages)}")
