# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A step's result is what really happened, and nothing of it is left running."""

import os
import sys
import time
from pathlib import Path

import pytest
from machine_speed import scaled

from devlib.stack_steps import STEPS, Step, run_step
from devlib.stacks import DEVICES, ROOT, read_stack

LOWEST, METAX = read_stack("lowest"), read_stack("metax-2.8")
TEST = """
import pytest
def test_good(): pass
def test_other(): pass
@pytest.mark.skip(reason="no chip")
def test_skipped(): pass
"""
BAD = TEST + "def test_bad(): assert 1 == 2, 'in /somewhere/of/mine/file.py'\n"


def run(tmp_path: Path, stack=LOWEST, **step):
    env = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    return run_step(Step(name="try", about="", **{"seconds": 120, **step}), stack, tmp_path, env, 1.0)


def a_test(tmp_path: Path, text: str) -> tuple[str, ...]:
    path = tmp_path / "test_it.py"
    path.write_text(text)
    return ("-c", os.devnull, "--rootdir", str(tmp_path), str(path))


def test_counts_and_reasons_are_pytests(tmp_path):
    found = run(tmp_path, tests=a_test(tmp_path, TEST))
    assert (found.outcome, found.passed, found.failed, found.skipped) == ("passed", 2, 0, 1)
    assert found.reason == "skipped: no chip"


def test_a_failure_is_named_without_a_folder_of_the_machine(tmp_path):
    found = run(tmp_path, tests=a_test(tmp_path, BAD))
    assert (found.outcome, found.passed, found.failed, found.skipped) == ("failed", 2, 1, 1)
    assert found.reason.startswith("test_bad: AssertionError: in .../file.py")


def test_all_skipped_is_not_passed(tmp_path):
    found = run(tmp_path, tests=a_test(tmp_path, TEST), chosen="test_skipped")
    assert (found.outcome, found.passed, found.skipped) == ("skipped", 0, 1)


def test_a_selection_of_nothing_is_a_failure(tmp_path):
    assert run(tmp_path, tests=a_test(tmp_path, TEST), chosen="elsewhere").outcome == "failed"


@pytest.mark.parametrize(("status", "outcome"), [(0, "passed"), (3, "failed")])
def test_a_command_is_judged_by_its_exit_status(tmp_path, status, outcome):
    found = run(tmp_path, command=("sh", "-c", f"echo ValueError: it is broken; echo; exit {status}"))
    assert found.outcome == outcome
    assert found.reason == ("exit status 3: ValueError: it is broken" if status else "")


def test_what_takes_too_long_is_ended_with_what_left_its_group(tmp_path):
    pid = tmp_path / "pid"
    text = f"setsid sleep 1000 & echo $! > {pid}; sleep 1000"
    begun = time.monotonic()
    found = run(tmp_path, command=("sh", "-c", text), seconds=2)
    assert time.monotonic() - begun < 60
    assert found.outcome == "failed"
    assert found.reason == "ended after 2 s"
    end = time.monotonic() + scaled(10)  # a killed process needs a moment
    while _alive(int(pid.read_text())) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _alive(int(pid.read_text()))


def _alive(pid: int) -> bool:
    path = Path(f"/proc/{pid}/stat")
    return path.exists() and path.read_text().rpartition(")")[2].split()[0] != "Z"


def test_without_a_simulated_device_the_reason_is_the_stacks(tmp_path):
    found = run(tmp_path, METAX, command=("false",))
    assert found.outcome == "skipped"
    assert found.reason == METAX.not_simulated
    assert run(tmp_path, METAX, command=("true",), device=False).outcome == "passed"


def test_a_step_whose_package_the_stack_lacks_is_left_out(tmp_path):
    assert run(tmp_path, needs="megatron-core", command=("true",)) is None


@pytest.mark.parametrize("vendor", DEVICES)
def test_every_step_names_files_that_are_there(vendor):
    for step in STEPS:
        assert bool(step.tests) != bool(step.command)
        assert [path for path in step.tests if not (ROOT / path.format(vendor=vendor)).exists()] == []
