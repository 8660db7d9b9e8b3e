# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""fp16 loss scaling on a simulated device, and its refusal where the chip cannot (field reports 103 and 104)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment
from tiny_models import write_language_model

from verl_hw_sim import simulated_environment

HERE = Path(__file__).parent

pytestmark = [pytest.mark.slow, pytest.mark.ci]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict:
    out = tmp_path_factory.mktemp("precision")
    write_language_model(out / "language_model")
    settings = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(HERE)}
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "precision_program.py"), str(out), str(out)],
        env=clean_environment(**settings, **simulated_environment("enflame", 1)),
        capture_output=True,
        text=True,
        timeout=scaled(240),
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads((out / "result.json").read_text())


@pytest.mark.parametrize("strategy", ["fsdp2", "fsdp"])
def test_scaling_is_on_and_rescues_small_gradients(results, strategy):
    written = results[strategy]
    assert written["enabled"]
    assert written["scale"] > 1
    assert written["unscaled"] == 0
    assert 0 < written["scaled"] < 1e-5


def test_fp16_is_refused_before_the_model_is_built_where_the_chip_has_no_fp64(results):
    assert results["fp16 without fp64"].startswith("UnsupportedPrecisionError: fp16 training needs float64")
    assert "param_dtype=bf16" in results["fp16 without fp64"]
    assert results["bf16 without fp64"] == ""


def test_verls_timing_average_works_where_avg_is_rejected(results):
    assert results["timings"] == {"step": 2.0}
