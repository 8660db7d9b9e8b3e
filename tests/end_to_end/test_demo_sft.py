# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a demo leaves behind: files that can be checked without its own verdict, or an error that can be acted on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COMMAND = [sys.executable, "-c", "from verl_hw_tools.cli import main; main()", "demo", "--vendor", "cambricon"]
# Puts a fault into rank 1 alone, before verl's trainer is imported.
FAULT = "import os, sys\nif os.environ.get('RANK') == '1':\n    sys.modules['torchdata'] = None\n"


def demo(output: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, "--output", str(output), *arguments],
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        timeout=scaled(500),
        check=False,
    )


def logged(output: Path, run: str) -> dict[int, tuple[float, float]]:
    """Loss and gradient norm by step, from the file that verl wrote."""
    lines = [json.loads(line) for line in (output / run / "metrics.jsonl").read_text().splitlines()]
    return {
        line["step"]: (line["data"]["train/loss"], line["data"]["train/grad_norm"])
        for line in lines
        if "train/loss" in line["data"]
    }


def test_verls_own_records_of_both_launches_agree_and_keep_keeps_the_checkpoint(tmp_path: Path) -> None:
    finished = demo(tmp_path / "out", "--steps", "8", "--keep")
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    whole, resumed = logged(tmp_path / "out", "whole-run"), logged(tmp_path / "out", "resumed-run")
    assert list(whole) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert whole[8][0] < whole[1][0] - 1.0
    assert resumed == {step: whole[step] for step in (5, 6, 7, 8)}
    assert (tmp_path / "out" / "whole-run" / "checkpoints" / "global_step_4").is_dir()


def test_the_megatron_engine_trains_and_a_new_process_resumes_exactly(tmp_path: Path) -> None:
    finished = demo(tmp_path / "out", "--steps", "6", "--strategy", "megatron")
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    whole, resumed = logged(tmp_path / "out", "whole-run"), logged(tmp_path / "out", "resumed-run")
    assert list(whole) == [1, 2, 3, 4, 5, 6]
    assert whole[6][0] < whole[1][0] - 1.0
    assert resumed == {step: whole[step] for step in (4, 5, 6)}
    assert "CambriconMegatronEngineWithLMHead" in finished.stdout


def test_a_failing_rank_is_named_with_its_error_and_its_log(tmp_path: Path) -> None:
    (tmp_path / "fault").mkdir()
    (tmp_path / "fault" / "sitecustomize.py").write_text(FAULT)
    finished = demo(tmp_path / "out", PYTHONPATH=str(tmp_path / "fault"))
    assert finished.returncode == 1
    assert "rank 1 (exit code 1)" in finished.stderr
    assert "ModuleNotFoundError" in finished.stderr
    log = finished.stderr.rpartition("full log: ")[2].strip()
    assert "torchdata" in Path(log).read_text()
