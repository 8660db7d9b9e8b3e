#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Write the table of checks in docs/doctor.md from the registry; a test compares them."""

import sys
from itertools import groupby
from pathlib import Path
from textwrap import wrap

sys.path.insert(0, str(Path(__file__).resolve().parent))

from devlib.marked_sections import renewed

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "doctor.md"
_WIDTH = 120


def generated() -> str:
    """Return the section of the checks."""
    from verl_hw_tools.doctor.registry import builtin_checks

    lines = []
    for group, checks in groupby(builtin_checks(), key=lambda check: check.group):
        lines += [f"### {group}", ""]
        for check in checks:
            lines += [f"#### {check.id}", "", *wrap(f"{check.title}. Why: {check.why}.", _WIDTH), ""]
    return "\n".join(lines)


def document(text: str) -> str:
    """Return the document with that section renewed."""
    return renewed(text, Path(__file__).name, lambda _name: generated())


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
