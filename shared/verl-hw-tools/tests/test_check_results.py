# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Results of ``verl-hw check``: merging of ranks, JSON, JUnit, terminal."""

import io
import json
from xml.etree import ElementTree

import pytest
from rich.console import Console

from verl_hw_tools.conformance.junit import junit_xml
from verl_hw_tools.conformance.results import CheckResult, Finding, Machine, Report, Status, worst
from verl_hw_tools.conformance.show import BarProgress, show_report


def result(name: str, status: Status, **fields) -> CheckResult:
    return CheckResult(id=name, title=f"{name} works", status=status, **fields)


def report(*results: CheckResult, simulated: str | None = "acme:2") -> Report:
    machine = Machine(
        vendor="acme",
        display_name="Acme One",
        device="acc",
        simulated=simulated,
        limits="no_fp64" if simulated else "",
        device_names=("One", "One"),
        versions={"torch": "2.13.0"},
    )
    return Report(machine=machine, results=results, processes=2, started="2026-11-30T06:00:00+00:00", seconds=1.5)


EVERY_STATUS = (
    result("rng.seed", Status.OK, seconds=0.25),
    result("rng.skipped", Status.SKIP, observed="one device"),
    result("memory.info", Status.WARN, observed="slow", expected="fast", blocks="metrics"),
    result(
        "collectives.sum", Status.FAIL, observed="3\x00[bold]", expected="4", blocks="training", ranks=(1,), processes=2
    ),
    result("collectives.hang", Status.CRASH, observed="no answer\n  File x", blocks="training"),
)


@pytest.mark.parametrize(
    ("statuses", "expected", "ranks"),
    [
        ("ok ok", Status.OK, (0, 1)),
        ("ok skip", Status.OK, (0,)),
        ("ok warn", Status.WARN, (1,)),
        ("fail warn", Status.FAIL, (0,)),
        ("fail fail", Status.FAIL, (0, 1)),
    ],
)
def test_the_worst_rank_decides(statuses, expected, ranks):
    findings = [(rank, Finding(status=Status(text), seconds=rank)) for rank, text in enumerate(statuses.split())]
    merged, found = worst(findings)
    assert (merged.status, found, merged.seconds) == (expected, ranks, 1.0)


def test_report_counts_and_passes():
    assert not report(*EVERY_STATUS).passed
    assert [item.id for item in report(*EVERY_STATUS).bad] == ["collectives.sum", "collectives.hang"]
    assert report(*EVERY_STATUS[:3]).passed
    with pytest.raises(KeyError):
        report().by_id("rng.seed")


def test_json_schema():
    data = json.loads(json.dumps(report(*EVERY_STATUS).as_data()))
    assert data["schema_version"] == 1
    assert data["passed"] is False
    assert data["summary"] == {"ok": 1, "skip": 1, "warn": 1, "fail": 1, "crash": 1}
    assert data["machine"]["simulated"] == "acme:2"
    assert data["machine"]["device_count"] == 2
    assert set(data["results"][3]) == {
        "id", "group", "title", "status", "blocks", "observed", "expected", "processes", "ranks", "seconds",
    }  # fmt: skip
    assert data["results"][3]["ranks"] == [1]


def test_junit_counts_and_is_well_formed():
    root = ElementTree.fromstring(junit_xml(report(*EVERY_STATUS)))  # noqa: S314 - our own output
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5", "failures": "1", "errors": "1", "skipped": "1",
    }  # fmt: skip
    assert [suite.get("name") for suite in root] == ["rng", "memory", "collectives"]
    failure = root.find(".//failure")
    assert "blocks: training" in failure.text
    assert root.find(".//system-out").text.startswith("warning")


def shown(*results: CheckResult, **options) -> str:
    stream = io.StringIO()
    show_report(report(*results, **options), Console(file=stream, width=60))
    return stream.getvalue()


def test_terminal_shows_what_failed_and_what_it_blocks():
    text = shown(*EVERY_STATUS)
    for part in ("SIMULATED (acme:2), limits no_fp64", "rank 1: 3", "[bold]", "blocks:   training", "not passed"):
        assert part in text
    assert "one device" in text
    assert "says nothing about the vendor's hardware" in text


def test_terminal_claims_real_devices_only_when_they_are():
    text = shown(EVERY_STATUS[0], simulated=None)
    assert "real devices" in text
    assert "simulated" not in text.lower()
    assert "passed: 1 ok" in text


def test_progress_names_a_failure_at_once_and_nothing_else_off_a_terminal():
    stream = io.StringIO()
    with BarProgress(Console(file=stream)) as progress:
        progress.survey()
        progress.begin(2)
        progress.check("rng.seed")
        progress.result(EVERY_STATUS[0])
        progress.result(EVERY_STATUS[3])
    assert stream.getvalue().split() == ["fail", "collectives.sum"]
