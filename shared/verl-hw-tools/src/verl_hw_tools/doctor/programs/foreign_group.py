# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m verl_hw_tools.doctor.programs.foreign_group FOLDER DEADLINE TASK GROUP VENDOR``: a package's checks.

TASK is ``list`` or ``run``; VENDOR the platform key that ``--vendor`` named, or ``-``.
"""

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.model import Finding
from verl_hw_tools.doctor.registry import Check, foreign_groups, load_group
from verl_hw_tools.doctor.stages import Stages
from verl_hw_tools.errors import CheckDefinitionError


def main(folder: Path, deadline: float, task: str, group: str, vendor: str) -> None:
    """Load the group; list its checks, or run each as a stage of its own."""
    stages = Stages(folder, deadline)
    loaded: list[Check] = []

    facts = Facts(asked=None if vendor == "-" else vendor)

    def load() -> list[dict[str, Any]]:
        found = load_group(foreign_groups()[group])
        loaded.extend(check for check in found if task != "run" or _applies(check, facts))
        return [_described(check) for check in loaded]

    if stages.attempt("load", load) and task == "run":
        for check in loaded:
            stages.attempt(check.id, partial(_run, check, facts))


def _run(check: Check, facts: Facts) -> dict[str, Any]:
    found = check.run(facts)
    if not isinstance(found, Finding):
        raise CheckDefinitionError(
            f"{check.id} returned {found!r}: a check returns ok(...), warn(...), fail(...) or skip(...)"
        )
    return asdict(found)


def _applies(check: Check, facts: Facts) -> bool:
    return not check.vendors or (facts.vendor is not None and facts.vendor.key in check.vendors)


def _described(check: Check) -> dict[str, Any]:
    return {"id": check.id, "title": check.title, "why": check.why, "doc": check.doc, "vendors": check.vendors}


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:6])
