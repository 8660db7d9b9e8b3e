# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``scripts/try_verl.py``: what counts as new, what is recorded, and that the locked verl comes back."""

import json
from importlib import metadata
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import try_verl
from verl_hw_core.upstream import LEDGER

REPORT = """<testsuites><testsuite>
<testcase classname="a" name="good"/>
<testcase classname="a" name="bad"><failure message="x"/></testcase>
<testcase classname="a" name="broken"><error message="x"/></testcase>
<testcase classname="a" name="left out"><skipped/></testcase>
</testsuite></testsuites>"""
GOOD_REPORT = '<testsuite><testcase classname="a" name="good"/></testsuite>'


@pytest.fixture
def index(monkeypatch, tmp_path):
    """A package index and tests; ``install`` notes what was put into the environment."""
    tried = tmp_path / "tried.json"
    tried.write_text(json.dumps({"about": "x", "tried": [{"verl": "0.9.1"}]}))
    seen = {"newest": "0.9.1", "gone": [], "report": GOOD_REPORT, "pytest": 0, "installed": [], "tried": tried}

    def run(program, *arguments, seconds, text=""):
        if "compile" in arguments:
            return CompletedProcess(arguments, 0, f"verl=={seen['newest']}\n", "")
        if program == "verl-hw":
            rows = [{"id": row, "verdict": "gone"} for row in seen["gone"]] + [{"id": "a", "verdict": "fits"}]
            rows.append({"id": "b", "verdict": None})
            return CompletedProcess(arguments, bool(seen["gone"]), json.dumps({"rows": rows}), "")
        if "install" in arguments:
            seen["installed"].append(arguments[-1])
            return CompletedProcess(arguments, 0, "", "")
        (path,) = (one.partition("=")[2] for one in arguments if one.startswith("--junitxml="))
        Path(path).write_text(seen["report"])
        return CompletedProcess(arguments, seen["pytest"], "", "it broke")

    monkeypatch.setattr(try_verl, "run", run)
    return seen


def results(index):
    return {one["verl"]: one for one in json.loads(index["tried"].read_text())["tried"]}


def call(index, *arguments):
    return try_verl.main([*arguments, "--tried", str(index["tried"])])


@pytest.mark.parametrize("newest", ["0.9.1", "0.9.0", "0.9.1rc1"])
def test_what_is_not_newer_is_not_tried(index, newest):
    index["newest"] = newest
    assert call(index) == 0
    assert (index["installed"], set(results(index))) == ([], {"0.9.1"})


@pytest.mark.parametrize("newest", ["0.9.2", "0.10.0rc1", "0.10.0"])
def test_a_new_one_is_tried_and_recorded_and_the_locked_one_comes_back(index, newest):
    index["newest"] = newest
    assert call(index) == 0
    assert index["installed"] == [f"verl=={newest}", f"verl=={metadata.version('verl')}"]
    found = results(index)[newest]
    assert found["patches"] == {"fit": 1, "moved": [], "gone": []}
    assert found["tests"] == {"passed": 1, "skipped": 0, "failed": []}


def test_what_does_not_fit_or_fails_ends_with_1(index):
    index["newest"], index["report"], index["pytest"] = "0.10.0", REPORT, 1
    assert call(index) == 1
    assert results(index)["0.10.0"]["tests"] == {"passed": 1, "skipped": 1, "failed": ["a::bad", "a::broken"]}
    index["report"], index["pytest"], index["gone"] = GOOD_REPORT, 0, ["worker-device"]
    assert call(index, "--verl", "0.10.0") == 1
    assert results(index)["0.10.0"]["patches"]["gone"] == ["worker-device"]
    assert set(results(index)) == {"0.9.1", "0.10.0"}  # the second result took the first one's place


def test_pytests_own_end_is_no_result_and_the_locked_one_comes_back(index, capsys):
    index["newest"], index["pytest"] = "0.10.0", 3
    assert call(index) == 2
    assert "pytest ended with 3" in capsys.readouterr().err
    assert index["installed"][-1] == f"verl=={metadata.version('verl')}"
    assert set(results(index)) == {"0.9.1"}


def test_the_locked_verl_was_tried_and_what_is_recorded_names_rows_of_the_registry():
    record = json.loads(try_verl.TRIED.read_text(encoding="utf-8"))
    assert record.keys() == {"about", "tried"}
    assert metadata.version("verl") in {one["verl"] for one in record["tried"]}
    for one in record["tried"]:
        assert {*one["patches"]["moved"], *one["patches"]["gone"]} <= {row.id for row in LEDGER}
        assert (one["patches"]["fit"], one["tests"]["passed"]) > (0, 0)
