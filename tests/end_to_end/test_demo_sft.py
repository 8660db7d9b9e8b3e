# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw demo`` as a user types it: verl's own SFT trainer on simulated devices, and every way it can end."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from platformkit import clean_environment, needs_cpu_torch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

COMMAND = [sys.executable, "-c", "from verl_hw_core.cli import main; main()", "demo"]
DEVICES = {"cambricon": "mlu", "intel": "xpu", "enflame": "gcu", "metax": "cuda"}
# Puts a fault into rank 1 alone, before verl's trainer is imported.
FAULT = "import os, sys\nif os.environ.get('RANK') == '1':\n    sys.modules['torchdata'] = None\n"


def demo(output: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, "--output", str(output), *arguments],
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )


def left_running(output: Path) -> list[int]:
    """Processes that were started for this output folder (it is in their environment) and still live."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and entry.name != str(os.getpid()):
            try:
                if str(output).encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:  # ended meanwhile, or not ours to read
                continue
    return found


def check_demo(vendor: str, output: Path, *arguments: str) -> dict:
    """Run the demo and check that it showed what it promises."""
    finished = demo(output, "--vendor", vendor, "--steps", "12", *arguments)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    summary = json.loads((output / "summary.json").read_text())
    assert summary["passed"]
    assert summary["simulated"]
    assert len(summary["losses"]) == 12
    assert all(map(math.isfinite, summary["losses"]))
    assert summary["losses"][-1] < summary["losses"][0] - 1.0
    assert summary["replayed_steps"] == [7, 8, 9, 10, 11, 12]
    assert summary["differences"] == []
    seen = {(fact["platform"], fact["parameter_device"]) for fact in summary["facts"]}
    assert seen == {(vendor, f"{DEVICES[vendor]}:{number}") for number in (0, 1)}
    assert "simulated" in finished.stdout
    assert finished.stdout.count("equal") >= 6
    assert "DIFFERENT" not in finished.stdout
    assert left_running(output) == []
    return summary


@pytest.mark.ci
def test_cambricon_trains_and_resumes_exactly_and_leaves_nothing_running(tmp_path: Path) -> None:
    output = tmp_path / "out"
    check_demo("cambricon", output)
    # The record of the two launches agrees digit for digit, read here without the demo's own comparison.
    runs = []
    for name in ("whole-run", "resumed-run"):
        lines = [json.loads(line) for line in (output / name / "metrics.jsonl").read_text().splitlines()]
        train = [line for line in lines if "train/loss" in line["data"] and line["step"] > 6]
        runs.append([(line["step"], line["data"]["train/loss"], line["data"]["train/grad_norm"]) for line in train])
    assert runs[0] == runs[1]
    assert len(runs[0]) == 6
    assert not (output / "whole-run" / "checkpoints").exists()


@pytest.mark.parametrize("vendor", ["intel", "enflame", pytest.param("metax", marks=needs_cpu_torch)])
def test_other_vendors_train_and_resume_exactly(vendor: str, tmp_path: Path) -> None:
    check_demo(vendor, tmp_path / "out")


def test_fsdp1_and_kept_checkpoints(tmp_path: Path) -> None:
    summary = check_demo("cambricon", tmp_path / "out", "--strategy", "fsdp", "--keep")
    assert {fact["strategy"] for fact in summary["facts"]} == {"fsdp"}
    assert (tmp_path / "out" / "whole-run" / "checkpoints" / "global_step_6").is_dir()


def test_ctrl_c_while_training_ends_every_process_at_once(tmp_path: Path) -> None:
    output = tmp_path / "out"
    facts = output / "whole-run" / "facts.jsonl"
    with subprocess.Popen(
        [*COMMAND, "--output", str(output), "--vendor", "cambricon", "--steps", "200"],
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 300
        while not (facts.exists() and facts.read_text().count("\n") == 2):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.3)
        assert left_running(output)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error == "verl-hw: stopped by SIGINT; nothing is left running\n"
    assert left_running(output) == []


def test_a_failing_rank_is_named_with_its_error_and_its_log(tmp_path: Path) -> None:
    (tmp_path / "fault").mkdir()
    (tmp_path / "fault" / "sitecustomize.py").write_text(FAULT)
    output = tmp_path / "out"
    finished = demo(output, "--vendor", "cambricon", PYTHONPATH=str(tmp_path / "fault"))
    assert finished.returncode == 1
    assert "rank 1 (exit code 1)" in finished.stderr
    assert "ModuleNotFoundError" in finished.stderr
    log = finished.stderr.rpartition("full log: ")[2].strip()
    assert "torchdata" in Path(log).read_text()
    assert left_running(output) == []


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    places = {"PATH": str(tmp_path / "bin"), "CXX": "", "VERL_HW_SIM_CACHE": str(tmp_path / "cache")}
    finished = demo(tmp_path / "out", "--vendor", "cambricon", **places)
    assert finished.returncode == 2
    assert "no C++ compiler" in finished.stderr
    assert "apt-get install g++" in finished.stderr
    assert "Traceback" not in finished.stderr
