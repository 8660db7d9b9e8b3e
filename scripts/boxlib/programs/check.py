# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw check``, and its checks over several devices as a step of their own. Its whole report is kept."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxlib.answers import WrongError, read_job, require_devices, step
from verl_hw_tools.conformance.results import CheckResult, Status
from verl_hw_tools.conformance.runner import Settings, run

_MOST_NAMED = 12
# A check that hangs must leave time for the others.
_LONGEST_CHECK_SECONDS = 40.0


def main() -> None:
    """Run the suite once; both steps are read from its report."""
    job = read_job()
    results: Sequence[CheckResult] = ()
    with step(job, "check") as answer:
        report = run(Settings(vendor=job.vendor, deadline=_LONGEST_CHECK_SECONDS * job.stretch))
        results = report.results
        Path("check.json").write_text(json.dumps(report.as_data(), indent=2), encoding="utf-8")
        answer.figures |= _judged([one for one in results if one.processes == 1])
    with step(job, "check-ranks") as answer:
        require_devices(job, 2)
        answer.figures |= _judged([one for one in results if one.processes > 1])


def _judged(results: Sequence[CheckResult]) -> dict[str, Any]:
    """Return how many ended how, and which are warnings.

    Raises:
        WrongError: None was run, or one failed.
    """
    counts = {status.value: sum(one.status is status for one in results) for status in Status}
    bad = [f"{one.id}: {one.observed}" for one in results if one.status.is_bad]
    if bad or not results:
        more = f"\nand {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
        said = ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "no check was run"
        raise WrongError("\n".join([said, *bad[:_MOST_NAMED]]) + more)
    warned = [one.id for one in results if one.status is Status.WARN]
    return {**counts, "warnings": warned}


if __name__ == "__main__":
    main()
