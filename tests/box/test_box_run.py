# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A box's script: deadlines, results, table and exit codes, with programs that end in every way."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from documents import ROOT
from machine_speed import scaled
from platformkit import clean_environment

from boxlib import record
from boxlib.programs import engines
from boxlib.running import PARTS, Job, Part, run_parts

PART = Part(module="sft", steps={"one": "first", "two": "second", "three": "third"}, deadline=30, least=1)


def job(folder: Path) -> Job:
    return Job(vendor="cambricon", device_type="mlu", devices=1, simulated=True, folder=str(folder))


def run_part(tmp_path: Path, launch, part: Part = PART, seconds: float = 60.0) -> dict[str, record.Step]:
    ((_, steps, _),) = run_parts([part], job, tmp_path, time.monotonic() + seconds, launch)
    return {step.name: step for step in steps}


def answer(folder: Path, *names: str) -> None:
    with (folder / "answers.jsonl").open("a") as stream:
        for name in names:
            line = {"name": name, "outcome": "passed", "reason": "", "figures": {"x": 1.5}, "seconds": 0.5}
            stream.write(json.dumps(line) + "\n")


def test_answers_become_steps_with_their_titles(tmp_path):
    def launch(command, folder, log, watch):
        assert command[-3:] == ["-m", "boxlib.programs.sft", "job.json"]
        assert json.loads((folder / "job.json").read_text())["vendor"] == "cambricon"
        answer(folder, "one", "two", "three")
        return 0

    steps = run_part(tmp_path, launch)
    assert [(step.title, step.outcome, step.figures) for step in steps.values()] == [
        ("first", "passed", {"x": 1.5}),
        ("second", "passed", {"x": 1.5}),
        ("third", "passed", {"x": 1.5}),
    ]


def test_a_program_that_dies_fails_where_it_was(tmp_path):
    def launch(command, folder, log, watch):
        answer(folder, "one")
        with (folder / "answers.jsonl").open("a") as stream:
            stream.write('{"name": "tw')
        log.write_text("Traceback\nSegmentation fault\n")
        return -11

    steps = run_part(tmp_path, launch)
    assert [step.outcome for step in steps.values()] == ["passed", "failed", "not run"]
    assert "exit code -11" in steps["two"].reason
    assert "Segmentation fault" in steps["two"].reason


def test_a_deadline_is_the_parts_or_what_is_left(tmp_path):
    def launch(command, folder, log, watch):
        began = time.monotonic()
        while time.monotonic() - began < 20:
            watch()
            time.sleep(0.02)
        raise AssertionError("nobody ended it")

    short = Part(module="sft", steps=PART.steps, deadline=0.3, least=0.1)
    steps = run_part(tmp_path / "own", launch, short)
    assert [step.outcome for step in steps.values()] == ["failed", "not run", "not run"]
    assert "not over after 0 s" in steps["one"].reason
    steps = run_part(tmp_path / "rest", launch, PART, seconds=12 + 1.5)
    assert "not over after 1 s" in steps["one"].reason


def test_a_part_without_time_is_not_begun(tmp_path):
    steps = run_part(tmp_path, None, PART, seconds=5)
    assert {step.outcome for step in steps.values()} == {"not run"}
    assert "0 s were left" in steps["one"].reason


def test_the_parts_names_are_the_programs():
    programs = {path.stem for path in (ROOT / "scripts" / "boxlib" / "programs").glob("*.py")} - {"__init__"}
    assert {part.module for part in PARTS} == programs
    names = [name for part in PARTS for name in part.steps]
    assert len(names) == len(set(names))


# The whole script, once, on a simulated device, with programs in place of those that train.
PROGRAMS = {
    "engines": "with step(job, 'parity') as a: a.figures['largest'] = 1e-7\n"
    "with step(job, 'parity-ranks'): require_devices(job, 2)",
    "check": "with step(job, 'check'): raise WrongError('2 fail: ' + str(Path.cwd()))\n"
    "with step(job, 'check-ranks'): require_devices(job, 2)",
    "sft": "print('about to die', flush=True)\nos.kill(os.getpid(), 9)",
    "grpo": "with step(job, 'grpo') as a: a.figures['reward'] = float('nan')",
    "base": "with step(job, 'base-engine'): 1 / 0",
    "weights": "with step(job, 'transfer-shm'): pass\ntime.sleep(600)",
}
HEAD = (
    "import os, time\nfrom pathlib import Path\nfrom boxlib.answers import *\nfrom boxlib.answers import read_job\n"
    "job = read_job()\n"
)


def fake_box(folder: Path, programs: dict[str, str]) -> Path:
    """A box with no packages: it runs in this environment, which has them all."""
    import hashlib
    import lzma
    import shutil
    import tarfile

    shutil.copytree(ROOT / "scripts" / "boxlib", folder / "boxlib", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "boxlib" / "run_box.py").rename(folder / "run_box.py")
    for name, text in programs.items():
        (folder / "boxlib" / "programs" / f"{name}.py").write_text(HEAD + text + "\n")
    with lzma.open(folder / "packages.tar.xz", "wb") as stream, tarfile.open(fileobj=stream, mode="w"):
        pass
    contents = {
        "vendor": "cambricon",
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "revision": "abc123",
        "simulator": True,
        "sha256": hashlib.sha256((folder / "packages.tar.xz").read_bytes()).hexdigest(),
        "needed": {"torch": "", "numpy": ">=2.0"},
        "carried": [],
    }
    (folder / "box.json").write_text(json.dumps(contents))
    return folder


def run_box(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(folder / "run_box.py"), *arguments],
        cwd=folder,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        timeout=scaled(180),
        check=False,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[subprocess.CompletedProcess[str], Path]:
    folder = fake_box(tmp_path_factory.mktemp("box") / "box", PROGRAMS)
    running = folder / "boxlib" / "running.py"
    text = running.read_text()
    last = text.rindex("deadline=90")
    running.write_text(f"{text[:last]}deadline={scaled(4):.0f}{text[last + len('deadline=90') :]}")
    done = run_box(folder, "--budget", f"{scaled(150):.0f}", VERL_HW_SIM="cambricon:1")
    assert (folder / "box-results" / "results.json").exists(), done.stdout + done.stderr
    return done, folder / "box-results"


def test_results_say_how_each_step_ended(finished):
    done, folder = finished
    results = record.read(folder / "results.json")
    outcomes = {step.name: step.outcome for step in results.steps}
    assert outcomes == {
        "parity": "passed",
        "parity-ranks": "not run",
        "check": "failed",
        "check-ranks": "not run",
        "sft": "failed",
        "grpo": "passed",
        "base-engine": "failed",
        "transfer-shm": "passed",
        "transfer-ipc": "failed",
        "sync-host": "not run",
        "sync-device": "not run",
    }
    reasons = {step.name: step.reason for step in results.steps}
    assert reasons["parity-ranks"] == reasons["check-ranks"] == "one device"
    assert reasons["base-engine"].startswith("ZeroDivisionError")
    assert "about to die" in reasons["sft"]
    assert "not over after" in reasons["transfer-ipc"]
    assert done.returncode == 1


def test_results_say_what_they_were_run_on(finished):
    results = record.read(finished[1] / "results.json")
    assert (results.vendor, results.device_type, results.devices, results.kind) == ("cambricon", "mlu", 1, "simulated")
    assert (results.revision, results.vendors_own) == ("abc123", False)
    assert {"python", "torch", "numpy", "verl"} <= results.versions.keys()
    assert results.device
    assert results.seconds > 0


def test_results_name_no_folder_of_the_machine(finished):
    _, folder = finished
    text = (folder / "results.json").read_text()
    assert "verl-hw-box-" not in text
    assert "2 fail: <work>/check" in text
    assert os.environ.get("HOME", "/nowhere") not in (folder / "log.txt").read_text()


def test_the_table_names_every_step(finished):
    done, folder = finished
    table = done.stdout[done.stdout.rindex("\n\n", 0, done.stdout.index("The device was simulated")) - 4000 :]
    for step in record.read(folder / "results.json").steps:
        assert any(line.startswith(step.name) and step.outcome in line for line in table.splitlines()), step.name
    assert "The device was simulated" in done.stdout


def test_no_process_and_no_folder_is_left(finished):
    left = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and b"boxlib.programs.weights" in (entry / "cmdline").read_bytes():
                left.append(entry.name)
        except OSError:
            continue
    assert left == []


def test_a_box_without_the_simulator_says_so(tmp_path):
    folder = fake_box(tmp_path / "box", PROGRAMS)
    manifest = folder / "box.json"
    manifest.write_text(manifest.read_text().replace('"simulator": true', '"simulator": false'))
    done = run_box(folder, VERL_HW_SIM="cambricon:1")
    assert done.returncode == 2
    assert "--with-simulator" in done.stderr
    assert not (folder / "box-results" / "results.json").exists()


# What the engines' part makes of numbers.


def engine_result(**changes) -> dict:
    result = {
        "parameter": "mlu:0",
        "inferred": [-5.5, -5.25],
        "steps": [{"loss": 0.5, "grad_norm": 2.0}],
        "after_save": {"loss": 0.4, "grad_norm": 1.0},
        "exported": {"weight": [0.0, 3.0]},
        "restored": True,
        "replayed": True,
    }
    return {"platform": "cambricon", "missing": [], "results": {"fsdp2-language_model": {**result, **changes}}}


def test_equal_numbers_pass_and_differences_are_figures(tmp_path):
    figures = engines.compare([engine_result()], [engine_result()], job(tmp_path))
    assert figures == {"largest relative difference, fsdp2-language_model": 0.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inferred": [-5.5, -5.251]}, "inferred value 1"),
        ({"steps": [{"loss": 0.5, "grad_norm": 2.1}]}, "grad_norm of step 1"),
        ({"after_save": {"loss": float("nan"), "grad_norm": 1.0}}, "loss of step 2"),
        ({"exported": {"weight": [0.0, 3.1]}}, "parameter weight"),
        ({"exported": {}}, "set of exported parameters"),
        ({"parameter": "cpu"}, "parameters on cpu"),
        ({"replayed": False}, "replayed exactly False"),
    ],
)
def test_a_difference_is_a_failure_and_named(tmp_path, changes, said):
    with pytest.raises(engines.WrongError, match=said):
        engines.compare([engine_result(**changes)], [engine_result()], job(tmp_path))


def test_another_platform_is_a_failure(tmp_path):
    elsewhere = engine_result() | {"platform": "nvidia"}
    with pytest.raises(engines.WrongError, match="platform nvidia, wanted cambricon"):
        engines.compare([elsewhere], [engine_result()], job(tmp_path))
