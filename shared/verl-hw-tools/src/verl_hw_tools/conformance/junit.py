# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The report as JUnit XML, which test systems read."""

import re
from xml.etree import ElementTree

from verl_hw_tools.conformance.results import CheckResult, Report, Status

# XML 1.0 cannot hold these, not even escaped; a vendor's error message may.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = {Status.FAIL: "failure", Status.CRASH: "error", Status.SKIP: "skipped"}


def junit_xml(report: Report) -> str:
    """Return the report as a JUnit document: a test suite a group; a warning passes and says so in its output."""
    title = f"verl-hw check, {report.machine.summary}"
    root = ElementTree.Element(
        "testsuites", {"name": title, "time": f"{report.seconds:.3f}", **_counts(report.results)}
    )
    for group in dict.fromkeys(result.group for result in report.results):
        members = tuple(result for result in report.results if result.group == group)
        seconds = sum(result.seconds for result in members)
        about = {"name": group, "timestamp": report.started, "time": f"{seconds:.3f}", **_counts(members)}
        suite = ElementTree.SubElement(root, "testsuite", about)
        for result in members:
            _add(suite, result, report.machine.vendor)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _counts(results: tuple[CheckResult, ...]) -> dict[str, str]:
    def count(status: Status) -> str:
        return str(sum(result.status is status for result in results))

    return {
        "tests": str(len(results)),
        "failures": count(Status.FAIL),
        "errors": count(Status.CRASH),
        "skipped": count(Status.SKIP),
    }


def _add(suite: ElementTree.Element, result: CheckResult, vendor: str) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"verl_hw.{vendor}.{result.group}",
        name=result.id,
        time=f"{result.seconds:.3f}",
    )
    mark = _MARKS.get(result.status)
    lines = [result.title, f"observed: {result.observed}", f"expected: {result.expected}", f"blocks: {result.blocks}"]
    text = _FORBIDDEN.sub("?", "\n".join(lines))
    if mark is not None:
        message = _FORBIDDEN.sub("?", result.observed.partition("\n")[0])
        ElementTree.SubElement(case, mark, message=message).text = text
    elif result.status is Status.WARN:
        ElementTree.SubElement(case, "system-out").text = f"warning\n{text}"
