# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What ``verl-hw check`` makes of ranks that answer, fail, die or hang. The ranks here are scripts without torch."""

import sys
from pathlib import Path

import pytest
from machine_speed import scaled

from verl_hw_core import processes
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_tools.conformance import launch
from verl_hw_tools.conformance.events import EventReader, EventWriter, events_file
from verl_hw_tools.conformance.job import Job
from verl_hw_tools.conformance.launch import LaunchPlan, run_launches
from verl_hw_tools.conformance.machine import Target
from verl_hw_tools.conformance.results import Status
from verl_hw_tools.conformance.runner import survey_devices
from verl_hw_tools.conformance.survey import ListedCheck
from verl_hw_tools.errors import CheckSuiteError

# Stands in for the module ``child``: what each check does is its name.
RANK = """
import os, sys, time
from pathlib import Path
from verl_hw_tools.conformance import events
from verl_hw_tools.conformance.job import Job

folder, rank = Path(sys.argv[-1]), int(os.environ["RANK"])
job, writer = Job.read(folder), events.EventWriter(folder, rank)
if "no_start" in job.group:
    writer.write(events.NOT_READY, error="RuntimeError: no driver")
    sys.exit(1)
writer.write(events.READY)
for check in job.checks:
    writer.write(events.START, id=check)
    name = check.partition(".")[2]
    if name == "dies" and rank == job.processes - 1:
        os.kill(os.getpid(), 11)
    if name == "exits":
        sys.exit(3)
    if name in ("hangs", "dies") or (name == "one_fails" and rank == 0):
        time.sleep(3600)
    status = {"one_fails": "fail", "warns": "warn"}.get(name, "ok")
    writer.write(events.RESULT, id=check, status=status, observed=f"{name} {rank}", expected="", seconds=0.1)
writer.write(events.END)
if "ends_badly" in job.group:
    os.kill(os.getpid(), 6)
if "never_ends" in job.group:
    time.sleep(3600)
"""


def test_a_torch_stack_that_does_not_start_is_told_by_its_reason_first(monkeypatch):
    def launcher(_command, *, log, **_):
        log.write_text("Traceback (most recent call last):\n  File 'x'\n    import y\nImportError: libcnrt.so\n")

    monkeypatch.setattr(processes, "run_launcher", launcher)
    spec = HardwareSpec(
        key="acme",
        display_name="Acme",
        distribution="verl-hw-acme",
        device_name="adev",
        ccl_backend="accl",
        visible_devices_envvar="ACME_DEVICES",
        ray_resources=("ACME",),
    )
    with pytest.raises(CheckSuiteError) as caught:
        survey_devices(target=Target(spec=spec, environment={}, simulated=None, limits=""))
    first, second, *rest = str(caught.value).splitlines()
    assert first == "the torch stack of acme does not start: ImportError: libcnrt.so"
    assert "VERL_HW_SIM=<vendor>:4" in second
    assert rest[-1] == "ImportError: libcnrt.so"


@pytest.fixture
def run_ranks(tmp_path, monkeypatch):
    """``run_ranks(names, processes, deadline)``: results by name, and how many launches they took."""
    package = tmp_path / "stand_in"
    package.mkdir()
    (package / "rank.py").write_text(RANK)
    # The launcher starts "python -m verl_hw_tools.conformance.child FOLDER"; here a wrapper starts the script instead.
    python = package / "python"
    python.write_text(
        f'#!/bin/sh\nif [ "$2" = verl_hw_tools.conformance.child ]; then \n'
        f'exec "{sys.executable}" "{package}/rank.py" "$3"; else exec "{sys.executable}" "$@"; fi\n'
    )
    python.chmod(0o755)
    starter = package / "start.py"
    starter.write_text(
        f"import sys\nfrom pathlib import Path\nsys.executable = {str(python)!r}\n"
        "from verl_hw_tools.conformance.ranks import main\nsys.exit(main(Path(sys.argv[-1])))\n"
    )
    real = launch.run_launcher
    monkeypatch.setattr(
        launch, "run_launcher", lambda command, **options: real([sys.executable, str(starter), command[-1]], **options)
    )
    monkeypatch.setattr("verl_hw_tools.conformance.watcher._LEAST_PATIENCE", scaled(0.5))
    monkeypatch.setattr("verl_hw_tools.conformance.watcher._PATIENCE", 0.0)

    def run(names: str, processes: int = 2, deadline: float = 30.0, group: str = "group"):
        checks = tuple(
            ListedCheck(id=f"{group}.{name}", title=name, blocks="work", processes=processes) for name in names.split()
        )
        plan = LaunchPlan(vendor="acme", group=group, processes=processes, checks=checks, deadline=scaled(deadline))
        folder = tmp_path / "launches"
        folder.mkdir()
        seen: list[str] = []
        results = run_launches(plan, {"PATH": "/usr/bin:/bin"}, folder, lambda _: None, lambda r: seen.append(r.id))
        assert seen == [result.id for result in results]
        assert [name for name in seen if not name.endswith(".exit")] == [check.id for check in checks]
        return {result.id.partition(".")[2]: result for result in results}, len(list(folder.iterdir()))

    return run


def test_all_answer(run_ranks):
    results, launches = run_ranks("first warns last")
    assert {name: result.status for name, result in results.items()} == {
        "first": Status.OK, "warns": Status.WARN, "last": Status.OK,
    }  # fmt: skip
    assert launches == 1
    assert results["warns"].ranks == (0, 1)


def test_a_rank_that_dies_costs_its_check_and_a_new_launch(run_ranks):
    results, launches = run_ranks("first dies last")
    assert (results["dies"].status, results["dies"].ranks) == (Status.CRASH, (1,))
    assert "SIGSEGV" in results["dies"].observed
    assert results["last"].status is Status.OK
    assert launches == 2


def test_a_check_that_hangs_ends_at_its_deadline(run_ranks):
    results, _ = run_ranks("hangs last", processes=1, deadline=1.0)
    assert results["hangs"].status is Status.CRASH
    assert f"no answer within {scaled(1.0):.0f} s" in results["hangs"].observed
    assert results["last"].status is Status.OK


def test_a_check_that_ends_its_process_is_a_crash(run_ranks):
    results, _ = run_ranks("exits last", processes=1)
    assert results["exits"].status is Status.CRASH
    assert "exit code 3" in results["exits"].observed


def test_a_rank_that_fails_while_others_wait_is_a_failure_and_not_a_hang(run_ranks):
    results, _ = run_ranks("one_fails last")
    assert (results["one_fails"].status, results["one_fails"].ranks) == (Status.FAIL, (1,))
    assert results["one_fails"].observed == "one_fails 1"
    assert results["last"].status is Status.OK


def test_ranks_that_do_not_start_say_why_once_for_each_check(run_ranks):
    results, launches = run_ranks("first last", group="no_start")
    assert {result.status for result in results.values()} == {Status.CRASH}
    assert "no driver" in results["last"].observed
    assert launches == 1


@pytest.mark.parametrize(
    ("group", "says"), [("ends_badly", "SIGABRT"), ("never_ends", "no sign of life within {:.0f} s")]
)
def test_processes_that_do_not_end_well_are_a_warning(run_ranks, group, says):
    results, launches = run_ranks("first", processes=1, group=group, deadline=2.0)
    assert results["first"].status is Status.OK
    assert results["exit"].status is Status.WARN
    assert says.format(scaled(2.0)) in results["exit"].observed
    assert launches == 1


def test_events_are_read_in_whole_lines(tmp_path: Path):
    writer, reader = EventWriter(tmp_path, 0), EventReader(tmp_path, 0)
    assert reader.read() == []
    writer.write("ready")
    with events_file(tmp_path, 0).open("a") as stream:
        stream.write('{"event": "sta')
    assert [event["event"] for event in reader.read()] == ["ready"]
    with events_file(tmp_path, 0).open("a") as stream:
        stream.write('rt"}\n')
    assert [event["event"] for event in reader.read()] == ["start"]


def test_job_survives_its_file(tmp_path: Path):
    job = Job(vendor="acme", group="rng", checks=("rng.a", "rng.b"), processes=2, deadline=3.5)
    job.write(tmp_path)
    assert Job.read(tmp_path) == job
