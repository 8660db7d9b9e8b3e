# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Probe: has this vendor's driver created its device nodes?"""

from pathlib import Path

from verl_hw_core.detection.evidence import Evidence, Verdict
from verl_hw_core.facts.hardware import Traces

KIND = "device_nodes"


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
        return Evidence(KIND, Verdict.ABSENT, f"no {', '.join(traces.device_nodes)}")
    return Evidence(
        KIND, Verdict.PRESENT, f"{found[0]} exists" + (f" (and {len(found) - 1} more)" if found[1:] else "")
    )
