# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of other packages: each group in a process of its own, since it may touch a vendor's runtime."""

import threading
from typing import Any

from verl_hw_tools.conformance.results import Status
from verl_hw_tools.doctor.child import run_child
from verl_hw_tools.doctor.model import Finding, Result, crash, fail
from verl_hw_tools.doctor.stages import Stage

LIST, RUN = "list", "run"
_DOC = "docs/doctor.md#checks-of-other-packages"


def run_group(name: str, vendor: str, deadline: float, stop: threading.Event, task: str = RUN) -> list[Result]:
    """Run, or list, the checks of a group; one result for each that applies here.

    Args:
        name: The group: the name of its entry point.
        vendor: The vendor that was asked for, or "-".
        deadline: Seconds that a check may take.
        stop: Ends the process early when it is set.
        task: :data:`RUN` or :data:`LIST`.
    """
    report = run_child("foreign_group", [task, name, vendor], deadline=deadline, stop=stop)
    described: list[dict[str, Any]] | None = report.data("load")
    if described is None:
        stage = next(iter(report.stages.values()))
        return [
            _result({"id": f"{name}.load", "title": f"the checks of group {name} can be loaded"}, _not_loaded(stage))
        ]
    if task == LIST:
        return [_result(one, Finding(status=Status.SKIP, observed="listed only")) for one in described]
    found = [
        _result(one, _finding(report.stages[one["id"]]), report.stages[one["id"]].seconds)
        for one in described
        if one["id"] in report.stages
    ]
    dead = report.died_in
    if dead is not None:
        # Those behind the one that died were never asked.
        later = [one for one in described if one["id"] not in report.stages]
        reason = f"not run: the process died in {dead.name}"
        found += [_result(one, Finding(status=Status.SKIP, observed=reason)) for one in later]
    return found


def _finding(stage: Stage) -> Finding:
    if stage.went_well:
        return Finding(**{**stage.data, "status": Status(stage.data["status"])})
    return crash(stage.error, expected="an answer", mend="report it to the package that adds it", details=stage.trace)


def _not_loaded(stage: Stage) -> Finding:
    return fail(
        stage.error, expected="a module of checks", mend="upgrade or uninstall the package", details=stage.trace
    )


def _result(described: dict[str, Any], finding: Finding, seconds: float = 0.0) -> Result:
    return Result(
        id=described["id"],
        title=described["title"],
        why=described.get("why", "another package added it"),
        doc=described.get("doc") or _DOC,
        finding=finding,
        seconds=seconds,
    )
