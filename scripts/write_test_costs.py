#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Write what CI's tests take, so that a slow day knows which ones there is no time for (see docs/development.md).

    CI=true python3 scripts/dev.py test --ci --junitxml=ci.xml
    python3 scripts/write_test_costs.py ci.xml --factor 1.07

The factor is the "machine speed" of that run, which pytest prints at its beginning.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

COSTS = Path(__file__).resolve().parents[1] / "tests" / "support" / "test_costs.json"
# Cheaper functions are not named: they would only be noise in the file.
NAMED_SECONDS = 4.0


def main() -> None:
    """Read a JUnit report and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="what pytest wrote with --junitxml")
    parser.add_argument("--factor", type=float, required=True, help="machine speed of that run")
    parser.add_argument("--out", type=Path, default=COSTS, help="file to write")
    arguments = parser.parse_args()
    found = costs(arguments.report.read_text(encoding="utf-8"), arguments.factor)
    arguments.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def costs(report: str, factor: float) -> dict[str, object]:
    """Return the costs in seconds of a quiet machine, as ``tests/support/time_budget.py`` reads them.

    Args:
        report: JUnit XML of a run.
        factor: How many times slower than a quiet machine that run was.
    """
    # What was left out or skipped for want of time is not in it, and would count as cheap next time.
    if "the time budget is over" in report:
        raise SystemExit("write_test_costs.py: this run skipped tests for want of time: take one of a quicker machine")
    taken: dict[str, list[float]] = defaultdict(list)
    suite = next(ElementTree.fromstring(report).iter("testsuite"))  # noqa: S314 - pytest has written it
    for case in suite.iter("testcase"):
        taken[_key(case.attrib["classname"], case.attrib["name"])].append(float(case.attrib["time"]) / factor)
    named = {key: sum(times) / len(times) for key, times in taken.items() if sum(times) >= NAMED_SECONDS}
    others = [one for key, times in taken.items() if key not in named for one in times]
    total = sum(map(sum, taken.values()))
    return {
        "fast": round(sum(others) / max(1, len(others)), 3),
        "speedup": round(total * factor / float(suite.attrib["time"]), 2),
        "named": {key: round(seconds, 1) for key, seconds in named.items()},
    }


def _key(classname: str, name: str) -> str:
    """Return ``file.py::function``, without folder, class and parameters."""
    file = next(part for part in reversed(classname.split(".")) if part.startswith("test_"))
    return f"{file}.py::{name.partition('[')[0]}"


if __name__ == "__main__":
    main()
