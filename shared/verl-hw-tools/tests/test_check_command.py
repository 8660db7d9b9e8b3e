# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw check`` as a command: choice of the vendor, selection of checks, exit codes. Nothing here starts torch."""

import json
import sys

import pytest
from machine_speed import scaled
from typer.testing import CliRunner

from verl_hw_core.errors import UnknownVendorError
from verl_hw_tools.cli.app import app
from verl_hw_tools.conformance import machine, registry, runner
from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.results import CheckResult, Machine, Report, Status
from verl_hw_tools.conformance.survey import ListedCheck
from verl_hw_tools.errors import CheckDefinitionError, MissingComponentError, NoHardwareError

CHECKS = tuple(
    ListedCheck(id=name, title=name, blocks="", processes=1)
    for name in ("rng.state", "rng.state_kinds", "collectives.all_reduce.sum", "collectives.all_reduce.avg")
)


def names(only: tuple[str, ...]) -> list[str]:
    return [check.id for check in runner.select(CHECKS, only)]


def test_selection_by_group_id_and_part_of_an_id():
    assert len(names(())) == 4
    assert names(("rng",)) == ["rng.state", "rng.state_kinds"]
    assert names(("rng.state",)) == ["rng.state"]
    assert names(("collectives.all_reduce", "rng.state_kinds")) == [
        "rng.state_kinds",
        "collectives.all_reduce.sum",
        "collectives.all_reduce.avg",
    ]


@pytest.mark.parametrize("name", ["nonsense", "rng.nonsense", "rng.sta"])
def test_a_name_of_no_check_is_refused(name):
    with pytest.raises(CheckDefinitionError, match=name):
        runner.select(CHECKS, (name,))


def test_checks_are_refused_with_bad_or_taken_ids():
    def passes(_: Bench) -> None:
        """It passes."""

    for bad in ("nodot", "Upper.case", "a b.c"):
        with pytest.raises(CheckDefinitionError, match=bad):
            registry.check(bad, blocks="")(passes)
    registry.check("test_check_command.once", blocks="")(passes)
    with pytest.raises(CheckDefinitionError, match="two checks"):
        registry.check("test_check_command.once", blocks="")(passes)


def test_a_simulated_vendor_is_chosen_by_its_variable(monkeypatch):
    monkeypatch.setenv("VERL_HW_SIM", "cambricon:2")
    monkeypatch.setenv("VERL_HW_SIM_LIMITS", "no_fp64")
    monkeypatch.setenv("VERL_PLATFORM", "nvidia")
    target = machine.choose_target(None)
    assert (target.spec.key, target.simulated, target.limits) == ("cambricon", "cambricon:2", "no_fp64")
    assert target.environment["VERL_HW_SIM"] == "cambricon:2"
    assert target.environment["VERL_HW_SIM_LIMITS"] == "no_fp64"
    assert target.environment["VERL_PLATFORM"] == "cambricon"
    assert machine.choose_target("mlu").spec.key == "cambricon"
    with pytest.raises(UnknownVendorError, match="intel"):
        machine.choose_target("intel")


def test_settings_that_the_simulator_refuses_are_said(monkeypatch):
    monkeypatch.setenv("VERL_HW_SIM", "cambricon:99")
    with pytest.raises(MissingComponentError, match="1 to 16"):
        machine.choose_target(None)


@pytest.fixture
def no_hardware(monkeypatch, tmp_path):
    monkeypatch.delenv("VERL_HW_SIM", raising=False)
    monkeypatch.setenv("VERL_HW_PROBE_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("VERL_HW_PROBE_CACHE", "0")


def test_without_a_device_the_error_says_what_to_do(no_hardware):
    with pytest.raises(NoHardwareError, match=r"(?s)no device.*verl-hw detect.*VERL_HW_SIM"):
        machine.choose_target(None)


def test_a_vendor_that_was_asked_for_is_checked_whatever_detection_says(no_hardware, monkeypatch):
    assert machine.choose_target("cambricon").spec.key == "cambricon"
    monkeypatch.setenv("VERL_PLATFORM", " MLU ")
    assert machine.choose_target(None).spec.key == "cambricon"
    monkeypatch.setenv("VERL_PLATFORM", "intell")
    with pytest.raises(UnknownVendorError, match="did you mean 'intel'"):
        machine.choose_target(None)


def test_more_processes_than_devices_are_refused(monkeypatch):
    monkeypatch.setenv("VERL_HW_SIM", "cambricon:2")
    target = machine.choose_target(None)
    with pytest.raises(NoHardwareError, match="--nproc 2 or fewer"):
        runner._processes(runner.Settings(processes=3), 2, target)
    with pytest.raises(NoHardwareError, match="sees no device"):
        runner._processes(runner.Settings(), 0, target)
    assert runner._processes(runner.Settings(), 8, target) == 4
    assert runner._processes(runner.Settings(processes=6), 8, target) == 6


def stub_report(status: Status) -> Report:
    about = Machine(vendor="acme", display_name="Acme", device="acc", simulated="acme:1", device_names=("One",))
    result = CheckResult(id="rng.state", title="title", status=status)
    return Report(machine=about, results=(result,), processes=1, started="now", seconds=0.1)


@pytest.fixture
def command(monkeypatch):
    """``command(status or error, *arguments)``: the command over a run that ends so."""

    def invoke(outcome: Status | Exception, *arguments: str):
        def run(settings, progress):
            invoke.settings = settings
            if isinstance(outcome, Exception):
                raise outcome
            return stub_report(outcome)

        monkeypatch.setattr(runner, "run", run)
        return CliRunner().invoke(app, ["check", *arguments])

    return invoke


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Status.OK, 0),
        (Status.WARN, 0),
        (Status.SKIP, 0),
        (Status.FAIL, 1),
        (Status.CRASH, 1),
        (NoHardwareError("none"), 2),
        (ZeroDivisionError("a fault of the suite"), 2),
    ],
)
def test_exit_codes(command, outcome, code):
    assert command(outcome).exit_code == code


def test_bad_usage_is_exit_code_2(command):
    assert command(Status.OK, "--nproc", "1").exit_code == 2
    assert command(Status.OK, "--deadline", "0").exit_code == 2


def test_json_alone_is_on_stdout(command):
    finished = command(Status.FAIL, "--json", "--only", "rng", "--only", "memory", "--nproc", "2", "--deadline", "9")
    assert json.loads(finished.stdout)["results"][0]["status"] == "fail"
    settings = command.settings
    assert (settings.only, settings.processes, settings.deadline) == (("rng", "memory"), 2, 9.0)


def test_junit_is_written_or_its_failure_said(command, tmp_path):
    assert command(Status.OK, "--junit", str(tmp_path / "report.xml")).exit_code == 0
    assert "testsuites" in (tmp_path / "report.xml").read_text()
    finished = command(Status.OK, "--junit", str(tmp_path / "missing" / "report.xml"))
    assert finished.exit_code == 2
    assert "cannot be written" in finished.output


def test_the_command_imports_no_torch():
    import subprocess

    code = (
        "import sys, verl_hw_tools.conformance, verl_hw_tools.conformance.show, verl_hw_tools.conformance.junit; "
        "sys.exit(bool({'torch', 'verl'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=scaled(60), check=False).returncode == 0
