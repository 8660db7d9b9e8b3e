# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the checks make of what the child processes told, the command's exit codes and its output."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from verl_hw_tools.cli.app import app
from verl_hw_tools.conformance.results import Status
from verl_hw_tools.doctor import bug_report, registry, runner
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.known_variables import OF_VERL_HW, VALUES
from verl_hw_tools.doctor.model import Finding, Report, Result, fail, ok, warn
from verl_hw_tools.doctor.show import show_report
from verl_hw_tools.doctor.stages import ChildReport, Stage
from verl_hw_tools.doctor.versions import VersionRow, conflicts, version_table

SOURCES = Path(__file__).parents[2]
Run = Callable[..., Any]


def report(*stages: Stage) -> ChildReport:
    return ChildReport(stages={stage.name: stage for stage in stages})


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command in this process, with a child process that tells what the test says."""
    monkeypatch.setenv("VERL_HW_PROBE_ROOT", str(tmp_path))
    for name in ("VERL_PLATFORM", "VERL_USE_EXTERNAL_PLUGINS", "VERL_HW_SIM", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, told: ChildReport | None = None) -> Any:
        monkeypatch.setattr(runner, "run_child", lambda *_, **__: told or report())
        return CliRunner().invoke(app, ["doctor", *arguments], env={"COLUMNS": "80"})

    return run


def result_of(answer: Any, check: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in json.loads(answer.stdout)["results"] if one["id"] == check)
    return found


def test_a_chip_asked_for_and_not_there_is_said_first(doctor: Run) -> None:
    answer = doctor("--vendor", "cambricon", "--check", "environment.visible")
    assert " ".join(answer.stdout.split()).startswith("no Cambricon MLU was found here, so what needs one was skipped.")
    assert "was found here" not in doctor("--check", "environment.visible").stdout


class TestExitCodes:
    def test_fine(self, doctor: Run) -> None:
        answer = doctor("--json", "--check", "environment.visible")
        assert answer.exit_code == 0, answer.output
        assert result_of(answer, "environment.visible")["status"] == "ok"

    def test_a_failure_is_1(self, doctor: Run) -> None:
        told = report(Stage(name="torch", data={}), Stage(name="plugin bad", error="ValueError: x", trace="Traceback"))
        answer = doctor("--json", "--check", "plugins.load", told=told)
        assert answer.exit_code == 1
        assert result_of(answer, "plugins.load")["details"].endswith("Traceback")

    def test_a_warning_is_1_only_when_strict(self, doctor: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VERL_HW_NONSENSE", "1")
        assert doctor("--check", "environment.settings").exit_code == 0
        answer = doctor("--check", "environment.settings", "--strict", "--json")
        assert answer.exit_code == 1
        assert json.loads(answer.stdout)["passed"] is False

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--check", "nothing.such"], "no check is called 'nothing.such'"),
            (
                ["--check", "system", "--check", "sys_tem.shm"],
                "no check is called 'sys_tem.shm': did you mean 'system.shm'?",
            ),
            (["--list", "--check", "nothing"], "no check is called 'nothing'"),
            (["--vendor", "nobody"], "unknown vendor 'nobody'"),
        ],
    )
    def test_a_wrong_question_is_2(self, doctor: Run, arguments: list[str], said: str) -> None:
        answer = doctor(*arguments)
        assert answer.exit_code == 2
        assert said in answer.stderr
        assert answer.stdout == ""

    def test_a_check_that_breaks_is_2_and_the_others_go_on(self, doctor: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def breaks(_facts: Facts) -> Finding:
            raise ZeroDivisionError("planted")

        good, bad = registry.builtin_checks()[:2]
        broken = registry.Check(id=bad.id, title=bad.title, why=bad.why, run=breaks)
        monkeypatch.setattr(runner, "builtin_checks", lambda: (good, broken))
        answer = doctor("--json")
        assert answer.exit_code == 2
        assert "planted" in result_of(answer, bad.id)["observed"]
        assert result_of(answer, good.id)["status"] in ("ok", "skip")

    def test_a_doctor_that_breaks_is_2(self, doctor: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "builtin_checks", lambda: 1 / 0)
        answer = doctor()
        assert answer.exit_code == 2
        assert "the doctor itself broke" in answer.stderr

    def test_so_is_a_bug_report_that_breaks(self, doctor: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_TOKEN", "letmein-please")
        monkeypatch.setattr(bug_report, "Facts", lambda: {}["letmein-please"])
        answer = CliRunner().invoke(app, ["env"])
        assert (answer.exit_code, answer.stdout) == (2, "")
        assert "KeyError: '<hidden>'" in answer.stderr
        assert "the bug report itself broke" in answer.stderr

    def test_its_own_traceback_holds_no_secret(self, doctor: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_TOKEN", "letmein-please")
        monkeypatch.setattr(runner, "builtin_checks", lambda: {}["letmein-please"])
        answer = doctor()
        assert "KeyError: '<hidden>'" in answer.stderr
        assert "letmein" not in answer.stderr


class TestJudgement:
    def test_what_died_while_verl_was_imported_is_named(self, doctor: Run) -> None:
        dead = Stage(name="plugin bad", error="the process was ended by SIGSEGV", trace="stack", died=True)
        told = report(
            Stage(name="torch", data={}), Stage(name="verl", error=dead.error, trace="stack", died=True), dead
        )
        found = result_of(doctor("--json", "--check", "verl", told=told), "verl.import")
        assert found["status"] == "crash"
        assert "in plugin bad: the process was ended by SIGSEGV" in found["observed"]

    def test_a_plugin_that_needs_verl_is_tried_again_with_it(
        self, doctor: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        depths = []

        def child(_program: str, arguments: list[str], **_: Any) -> ChildReport:
            depths.append(arguments[0])
            bad = "" if arguments[0] == "full" else "ImportError: cannot import name 'DataProto' from 'verl'"
            return report(Stage(name="torch", data={}), Stage(name="plugin other", error=bad))

        doctor()  # sets the environment up
        monkeypatch.setattr(runner, "run_child", child)
        answer = CliRunner().invoke(app, ["doctor", "--check", "plugins.load", "--json"])
        assert depths == ["plugins", "full"]
        assert result_of(answer, "plugins.load")["status"] == "ok"

    def test_verl_is_imported_where_a_vendor_is_asked_for_and_not_without_hardware(self, tmp_path: Path) -> None:
        assert runner.needs_full(Facts(asked="acme"))

    def test_small_shared_memory_and_few_files(self, doctor: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        from verl_hw_tools.doctor.checks import system

        monkeypatch.setattr(system.shutil, "disk_usage", lambda _: type("Usage", (), {"total": 64 * 2**20}))
        monkeypatch.setattr(system.resource, "getrlimit", lambda _: (1024, 4096))
        answer = doctor("--json", "--check", "system")
        assert "--shm-size=" in result_of(answer, "system.shm")["mend"]
        assert result_of(answer, "system.shm")["status"] == result_of(answer, "system.open_files")["status"] == "warn"


class TestOutput:
    RESULTS = (
        Result(id="a.fine", title="all is fine", why="it is", doc="docs/doctor.md#afine", finding=ok("yes " * 60)),
        Result(
            id="a.doubt", title="no doubt", why="doubts cost time", doc="d",
            finding=warn("a doubt", expected="none", mend="export A=" + "x" * 100),
        ),
        Result(
            id="b.bad", title="nothing is bad", why="it blocks", doc="docs/doctor.md#bbad",
            finding=fail("bad\nin two lines", expected="good", mend="pip install good", details="Traceback: [red]x"),
        ),
    )  # fmt: skip

    def show(self, *, verbose: bool = False) -> list[str]:
        console = Console(width=80, no_color=True, highlight=False, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
        made = Report(
            vendor=None, summary="verl would use nothing: " + "because " * 12, results=self.RESULTS, seconds=1.0
        )
        show_report(made, console, verbose=verbose)
        return console.export_text().splitlines()

    def test_the_verdict_first_then_the_worst_then_the_rest(self) -> None:
        lines = self.show()
        assert lines[0].startswith("verl would use nothing")
        assert "3 checks: 1 ok, 1 warn, 1 fail" in lines[2]
        heads = [line.split()[1] for line in lines if re.match(r"(FAIL|WARN|ok) ", line)]
        assert heads == ["b.bad:", "a.doubt:", "a.fine"]

    def test_it_fits_80_columns_but_for_what_is_to_be_copied(self) -> None:
        lines = self.show()
        assert all(len(line) <= 80 for line in lines if "mend" not in line), [line for line in lines if len(line) > 80]
        assert "  mend      export A=" + "x" * 100 in lines
        assert "    | Traceback: [red]x" in lines

    def test_verbose_cuts_nothing(self) -> None:
        assert " ".join(self.show(verbose=True)).count("yes") == 60
        assert " ".join(self.show()).count("yes") < 20


class TestVersions:
    def test_the_table_says_only_what_was_run(self) -> None:
        assert {row.name for row in version_table()} >= {"python", "torch", "verl", "ray"}

    @pytest.mark.parametrize(
        ("version", "covered", "allowed"),
        [
            ("2.13.0+cu130", True, True),
            ("2.10.0+acme3.5", False, True),
            ("2.7.1", False, False),
            ("nonsense", False, False),
        ],
    )
    def test_a_vendors_build_counts_as_its_release(self, version: str, covered: bool, allowed: bool) -> None:
        row = VersionRow(name="torch", tested=("2.12", "2.13"), floor="2.8", ceiling=None)
        assert (row.covers(version), row.allows(version)) == (covered, allowed)

    def test_extras_are_no_requirement(self) -> None:
        assert conflicts(["verl-hw-core"]) == []


class TestRegistry:
    def test_every_check_says_what_why_and_where(self) -> None:
        checks = registry.builtin_checks()
        assert len({check.id for check in checks}) == len(checks) >= 40
        for check in checks:
            assert check.title
            assert check.why
            assert check.doc == f"docs/doctor.md#{check.id.replace('.', '')}"

    def test_the_list_runs_nothing(self, doctor: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "examine", lambda _: 1 / 0)
        answer = doctor("--list", "--json")
        assert [row["id"] for row in json.loads(answer.stdout)] == [check.id for check in registry.builtin_checks()]
        assert "plugins.load" in doctor("--list", "--check", "plugins").stdout

    def test_every_variable_that_the_code_reads_is_known(self) -> None:
        """A misspelt variable is reported by its absence from that list."""
        read = {
            name
            for file in SOURCES.glob("*/src/**/*.py")
            for name in re.findall(r'"(VERL_HW_[A-Z_]+[A-Z])"', file.read_text(encoding="utf-8"))
        }
        assert set(OF_VERL_HW) == read
        assert set(VALUES) <= read


def test_status_order_is_that_of_severity() -> None:
    from verl_hw_tools.doctor.model import worst_first

    assert [result.status for result in worst_first(TestOutput.RESULTS)] == [Status.FAIL, Status.WARN]
