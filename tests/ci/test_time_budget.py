# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a slow day leaves out, and what it says about it."""

import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import machine_speed
import pytest
import session_plugin
import time_budget
from documents import ROOT
from time_budget import Costs, plan

import write_test_costs

COSTS = Costs(
    fast=1.0,
    speedup=2.0,
    named={"test_dear.py::test_a": 300.0, "test_cheap.py::test_b": 30.0, "test_third.py::test": 60},
)


class Item:
    """A test, as pytest shows it to a plugin."""

    def __init__(self, nodeid, priority=None, slow=True):
        self.nodeid = nodeid
        mark = SimpleNamespace(args=(), kwargs={} if priority is None else {"priority": priority})
        self._marks = {"slow": mark, "ci": mark} if slow else {}

    def get_closest_marker(self, name):
        return self._marks.get(name)


TESTS = [
    Item("tests/a/test_dear.py::test_a[one]"),
    Item("tests/a/test_late.py::test_late", priority=3),
    Item("shared/b/tests/test_cheap.py::TestX::test_b[two::three]", priority=2),
    Item("tests/b/test_third.py::test", priority=2),
    *(Item(f"tests/c/test_many.py::test_{number}", slow=False) for number in range(100)),
]


def planned(factor, budget, workers=2):
    return plan(TESTS, COSTS, factor=factor, workers=workers, budget=budget)


def test_a_quiet_machine_leaves_nothing_out():
    found = planned(1.0, 300)
    assert found.left_out == []
    assert set(found.kept) == set(TESTS)
    assert found.seconds == found.wanted == (300 + 20 + 30 + 60 + 100) / 2


def test_without_a_budget_nothing_is_left_out():
    assert planned(30.0, None).left_out == []


@pytest.mark.parametrize(
    ("budget", "files"),
    [
        (6 * 255, []),
        (6 * 250, ["test_late.py"]),
        (6 * 240, ["test_late.py", "test_third.py"]),
        (6 * 210, ["test_late.py", "test_third.py", "test_cheap.py"]),
        (6 * 199, ["test_late.py", "test_third.py", "test_cheap.py", "test_dear.py"]),
        (1, ["test_late.py", "test_third.py", "test_cheap.py", "test_dear.py"]),
    ],
)
def test_a_slow_machine_leaves_out_the_last_priority_first_and_of_one_the_dearest(budget, files):
    found = planned(6.0, budget)
    assert [one.file for one in found.left_out] == files
    assert [one.priority for one in found.left_out] == [3, 2, 2, 1][: len(files)]
    assert len(found.kept) + sum(one.tests for one in found.left_out) == len(TESTS)
    assert found.wanted == 6 * 255
    assert found.seconds == pytest.approx(found.wanted - sum(one.seconds for one in found.left_out))
    assert found.seconds <= budget or budget == 1
    # A test that is not slow is never left out.
    assert sum(not time_budget.is_slow(one) for one in found.kept) == 100


def test_one_process_takes_as_long_as_the_sum():
    assert planned(1.0, None, workers=1).wanted == 510


def test_the_order_is_fast_files_then_by_priority_the_longest_first():
    assert [one.nodeid.partition("::")[0].rpartition("/")[2] for one in planned(1.0, None).kept][99:] == [
        "test_many.py",
        "test_dear.py",
        "test_third.py",
        "test_cheap.py",
        "test_late.py",
    ]


def test_a_slow_test_that_nobody_has_measured_counts_unless_its_file_was():
    assert COSTS.of(Item("x/test_dear.py::test_cheap")) == 1.0
    assert COSTS.of(Item("x/test_new.py::test_new")) == time_budget.UNKNOWN_SLOW_SECONDS
    assert COSTS.of(Item("x/test_new.py::test_new", slow=False)) == 1.0


def test_a_slow_test_that_ci_does_not_run_is_the_first_to_go():
    item = Item("x/test_new.py::test_new")
    item._marks.pop("ci")
    found = plan([*TESTS, item], COSTS, factor=6.0, workers=2, budget=6 * 260)
    assert [one.file for one in found.left_out] == ["test_new.py"]


def test_most_of_the_committed_costs_are_of_tests_that_exist():
    """One that was renamed counts as unknown; too many would make the plan a guess."""
    found = Costs.read()
    files = {path.name: path for path in (*ROOT.glob("*/*/tests/**/test_*.py"), *ROOT.glob("tests/**/test_*.py"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    named = [key.partition("::") for key in found.named]
    known = [f"def {function}(" in texts.get(file, "") for file, _, function in named]
    assert sum(known) >= 0.7 * len(known), "run scripts/write_test_costs.py again"
    assert min((found.fast, found.speedup, *found.named.values())) > 0


def test_shards_hold_every_test_once_and_a_file_in_one_and_are_about_equal():
    shards = [time_budget.shard(TESTS, COSTS, index, 2) for index in (1, 2)]
    assert sorted(map(id, shards[0] + shards[1])) == sorted(map(id, TESTS))
    files = [{one.nodeid.partition("::")[0].rpartition("/")[2] for one in shard} for shard in shards]
    assert files == [{"test_dear.py"}, {"test_many.py", "test_third.py", "test_cheap.py", "test_late.py"}]


REPORT = """<testsuites><testsuite name="pytest" time="10.0">
<testcase classname="shared.verl-hw-core.tests.test_a" name="test_x[1-::b]" time="6.0" />
<testcase classname="shared.verl-hw-core.tests.test_a" name="test_x[2]" time="2.0" />
<testcase classname="tests.end_to_end.test_b.TestClass" name="test_y" time="12.0" />
<testcase classname="tests.end_to_end.test_b.TestClass" name="test_z" time="0.2"><skipped message="no" /></testcase>
</testsuite></testsuites>"""


def test_costs_are_read_from_a_report():
    assert write_test_costs.costs(REPORT, 2.0) == {
        "fast": 0.1,
        "speedup": 2.02,
        "named": {"test_a.py::test_x": 2.0, "test_b.py::test_y": 6.0},
    }


SUITE = """
import pytest, time
@pytest.mark.slow
@pytest.mark.ci(priority={priority})
@pytest.mark.timeout(50)
def test_slow(request):
    assert request.node.get_closest_marker("timeout").args == (300.0,)
def test_fast(request):
    assert request.node.get_closest_marker("timeout").args == (600.0,)
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadfile")], ids=["one process", "two"])
def test_a_run_says_what_it_left_out_before_pytests_last_line(workers, tmp_path):
    for number in (1, 2, 3):
        (tmp_path / f"test_p{number}.py").write_text(SUITE.format(priority=number))
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 100\nmarkers =\n  slow: s\n  ci: c\n")
    seconds = time_budget.UNKNOWN_SLOW_SECONDS * 6 * 1.5 / (Costs.read().speedup if workers else 1)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "session_plugin", f"--time-budget={seconds}", "-ra", *workers],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests/support"), machine_speed.VARIABLE: "6", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=machine_speed.scaled(60),
        check=False,
    )
    assert done.returncode == 0, done.stdout
    head, dear, then, last = done.stdout.splitlines()[-4:]
    assert head.startswith("left out, since this machine takes 6.0 times as long as a quiet one")
    assert re.fullmatch(r"  test_p3\.py: 1 tests of priority 3, \d\.\d minutes", dear)
    assert then.startswith("  test_p2.py: 1 tests of priority 2")
    assert re.search(r"4 passed(, 2 deselected)? in ", last)


class Config:
    """As much of pytest's configuration as the session asks for."""

    def getoption(self, name):
        return 10.0


@pytest.mark.parametrize(("slow", "late", "skipped"), [(True, True, True), (True, False, False), (False, True, False)])
def test_a_slow_test_that_is_reached_too_late_is_skipped(slow, late, skipped, monkeypatch):
    monkeypatch.setenv(session_plugin._END, "")  # put back afterwards: this process has a session of its own
    session = session_plugin._Session(Config())
    session.end = time.monotonic() + (-1 if late else 60)
    item = Item("x/test_new.py::test_new", slow=slow)
    if skipped:
        with pytest.raises(pytest.skip.Exception, match="budget is over"):
            session.pytest_runtest_setup(item)
    else:
        session.pytest_runtest_setup(item)
    assert session.lines == [f"left out, {session_plugin._TOO_LATE}: {item.nodeid}"] * skipped


@pytest.mark.parametrize(
    ("imports", "loop", "expected"),
    [([2.0], 0.05, 1.0), ([20.0, 6.0], 0.13, 3.0), ([30.0, 30.0], 0.13, 15.0), ([1.0], 1.3, 10)],
)
def test_the_worse_of_loop_and_import_is_the_factor_and_a_first_import_does_not_count(
    imports, loop, expected, monkeypatch
):
    left = list(imports)
    monkeypatch.setattr(machine_speed, "_import_seconds", lambda: left.pop(0))
    monkeypatch.setattr(machine_speed, "_loop_seconds", lambda: loop)
    assert machine_speed.measure() == pytest.approx(expected)
    assert left == []


def test_the_factor_is_measured_once_and_never_below_one(monkeypatch):
    monkeypatch.setenv(machine_speed.VARIABLE, "")
    assert (machine_speed.factor(), machine_speed.scaled(5)) == (1.0, 5.0)
    monkeypatch.setattr(machine_speed, "measure", lambda: 4.0)
    machine_speed.measure_once()
    monkeypatch.setattr(machine_speed, "measure", lambda: 9.0)
    machine_speed.measure_once()
    assert machine_speed.scaled(5) == 20.0
    monkeypatch.setenv(machine_speed.VARIABLE, "0.2")
    assert machine_speed.scaled(5) == 5.0
