# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from machine_speed import scaled
from typer.testing import CliRunner

from verl_hw_core.errors import TrainingFailedError
from verl_hw_tools.cli.app import app
from verl_hw_tools.cli.outcome import reported
from verl_hw_tools.demo import sft
from verl_hw_tools.errors import OutputFolderError
from verl_hw_tools.installed import installed_wheels

WHEELS = installed_wheels()
needs_a_wheel = pytest.mark.skipif(not WHEELS, reason="no vendor wheel is installed")


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_help_is_fast_because_nothing_heavy_is_imported() -> None:
    code = (
        "import sys\nfrom verl_hw_tools.cli.app import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "print([n for n in ('torch', 'verl', 'rich', 'numpy', 'transformers', 'ray') if n in sys.modules])"
    )
    start = time.monotonic()
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=scaled(60), check=True
    ).stdout
    assert out.splitlines()[-1] == "[]"
    assert "demo" in out
    assert "detect" in out
    assert time.monotonic() - start < scaled(5)  # about 0.2 s on an idle machine


def test_version_lists_core_and_wheels() -> None:
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("verl-hw-core ")
    assert all(f"{wheel.distribution} {wheel.version}" in out for wheel in WHEELS)


@needs_a_wheel
def test_an_unknown_vendor_exits_2_with_a_suggestion() -> None:
    code, out, err = run("demo", "--vendor", WHEELS[0].name[:-1] + "q")
    assert (code, out) == (2, "")
    assert f"did you mean '{WHEELS[0].name}'?" in err
    assert "Traceback" not in err


@pytest.mark.skipif(len(WHEELS) < 2, reason="needs several vendor wheels")
def test_without_a_vendor_the_choice_is_listed() -> None:
    code, _, err = run("demo")
    assert code == 2
    assert all(wheel.name in err for wheel in WHEELS)


@needs_a_wheel
@pytest.mark.parametrize("arguments", [["--steps", "3"], ["--strategy", "ddp"], ["--nproc", "0"], ["--nonsense"]])
def test_wrong_options_exit_2(arguments: list[str]) -> None:
    assert run("demo", "--vendor", WHEELS[0].name, *arguments)[0] == 2


@needs_a_wheel
def test_foreign_files_are_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sft, "require_components", lambda simulated: None)
    (tmp_path / "mine").write_text("x")
    code, _, err = run("demo", "--vendor", WHEELS[0].name, "--output", str(tmp_path))
    assert code == 2
    assert "mine" in err


@needs_a_wheel
def test_options_reach_the_demo_and_its_verdict_is_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def fake(demo: sft.SftDemo, _console: object) -> object:
        seen.append(demo)
        return type("Verdict", (), {"passed": demo.settings.seed == 0})

    monkeypatch.setattr(sft, "run_sft_demo", fake)
    arguments = ["demo", "--vendor", WHEELS[0].name, "--steps", "8", "--strategy", "fsdp", "--output", str(tmp_path)]
    assert run(*arguments)[0] == 0
    assert run(*arguments, "--seed", "5")[0] == 1
    assert (seen[0].settings.steps, seen[0].settings.strategy, seen[0].output) == (8, "fsdp", tmp_path)
    assert seen[0].spec == WHEELS[0].spec


@pytest.mark.parametrize(("error", "code"), [(OutputFolderError("no room"), 2), (TrainingFailedError("no room"), 1)])
def test_errors_are_one_message(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    import typer

    with pytest.raises(typer.Exit) as caught, reported():
        raise error
    assert caught.value.exit_code == code
    assert capsys.readouterr().err == "verl-hw: no room\n"


# What a command does when it is interrupted: it cleans up, undisturbed by an impatient second signal.
COMMAND = """
import sys, time
from verl_hw_tools import cli
from verl_hw_tools.cli import app as commands
def run():
    try:
        print("up", flush=True)
        time.sleep(600)
    finally:
        time.sleep(0.5)
        print("clean", flush=True)
commands.app = run
cli.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_interrupts_and_later_ones_leave_cleaning_up_alone(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        time.sleep(0.2)
        process.send_signal(number)
        out, err = process.communicate(timeout=scaled(30))
    assert process.returncode == 128 + number
    assert out == "clean\n"
    assert err == f"verl-hw: stopped by {number.name}; nothing is left running\n"


def test_a_signal_that_the_parent_ignores_stays_ignored() -> None:
    code = (
        "import os, signal\nfrom verl_hw_tools.cli.interrupt import raise_on_interrupt\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\nraise_on_interrupt()\nos.kill(os.getpid(), signal.SIGHUP)\n"
    )
    subprocess.run([sys.executable, "-c", code], timeout=scaled(60), check=True)


@pytest.mark.parametrize(
    "arguments", [["detect"], ["detect", "--json"], ["patches", "--all"], ["--version"], ["--help"]]
)
def test_output_that_cannot_be_written_is_one_line(arguments: list[str]) -> None:
    command = [sys.executable, "-c", "from verl_hw_tools.cli import main; main()", *arguments]
    with Path("/dev/full").open("wb") as full:
        found = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=scaled(120), check=False
        )
    assert found.returncode == 2
    assert found.stderr == "verl-hw: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("arguments", [["detect"], ["ledger", "--json"], ["--help"]])
def test_output_that_nobody_reads_ends_the_command_silently(arguments: list[str]) -> None:
    command = [sys.executable, "-c", "from verl_hw_tools.cli import main; main()", *arguments]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        found = subprocess.run(
            command, stdout=closed, stderr=subprocess.PIPE, text=True, timeout=scaled(120), check=False
        )
    assert (found.returncode, found.stderr) == (1, "")


@pytest.mark.parametrize("name", ["sft", "grpo", "ppo"])
def test_options_before_a_demos_name_are_refused_not_dropped(name: str) -> None:
    code, out, err = run("demo", "--steps", "5", name)
    assert (code, out) == (2, "")
    assert f"verl-hw demo {name} --steps" in err


@pytest.mark.parametrize("name", ["grpo", "ppo"])
def test_simulated_nodes_and_real_hardware_exclude_each_other(name: str) -> None:
    code, _, err = run("demo", name, "--nodes", "2", "--real")
    assert code == 2
    assert "start Ray on each node" in err.replace("\n", " ")


@needs_a_wheel
def test_every_demo_says_which_vendors_there_are() -> None:
    for name in ("sft", "grpo", "ppo"):
        code, _, err = run("demo", name, "--vendor", "nobody")
        assert code == 2
        assert WHEELS[0].name in err
