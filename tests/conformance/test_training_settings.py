# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's engine on a simulated device with model patches, fused log-probs, full determinism, and without part of the
memory interface (field reports 69, 71, 72 and 101)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment
from tiny_models import write_language_model

from verl_hw_sim import simulated_environment

HERE = Path(__file__).parent
SUPPORT = HERE.parent / "support"

pytestmark = [pytest.mark.slow, pytest.mark.ci]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict:
    out = tmp_path_factory.mktemp("settings")
    write_language_model(out / "language_model")
    path = os.pathsep.join((str(HERE), str(SUPPORT)))
    settings = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": path}
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "settings_program.py"), str(out), str(out)],
        env=clean_environment(**settings, **simulated_environment("cambricon", 1)),
        capture_output=True,
        text=True,
        timeout=scaled(240),
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads((out / "result.json").read_text())


@pytest.fixture
def scenario(results, request) -> dict:
    """What the scenario that the test's class names wrote."""
    written = results[request.cls.scenario]
    assert "error" not in written, written["error"]
    return written


class TestModelPatches:
    scenario = "patched"

    def test_a_right_kernel_trains_to_the_same_gradients(self, scenario):
        good = scenario["good"]
        assert good["applied"] == ["acme_kernels.good"]
        # Five norms a pass, beyond the calls of the gradient check.
        assert good["calls"] >= 5
        assert good["gradients"] == pytest.approx(scenario["none"]["gradients"], rel=1e-5)

    def test_a_kernel_without_autograd_is_not_used(self, scenario):
        faulty = scenario["without_autograd"]
        assert faulty["applied"] == []
        (line,) = faulty["lines"]
        assert "acme_kernels.without_autograd has no gradient" in line
        assert faulty["gradients"] == scenario["none"]["gradients"]

    def test_liger_excludes_ours(self, results):
        assert results["with_liger"] == []


class TestMemory:
    scenario = "without_memory_interface"

    def test_a_reference_model_runs_from_pageable_memory(self, scenario):
        assert "RuntimeError: not implemented on this chip" in scenario["without pinned-memory"]
        assert scenario["tokens"] == 59
        assert scenario["activation"] == [1.0, 1.0]
        assert {"memory-query", "pinned-memory"} <= set(scenario["rows"])

    def test_a_memory_query_that_raises_stops_nothing(self, scenario):
        assert "RuntimeError: not implemented on this chip" in scenario["without memory-query"]
        assert scenario["zero"] == ""

    def test_each_is_said_once(self, scenario):
        for start in ("The device's memory cannot be asked", "Host memory cannot be pinned"):
            assert sum(line.startswith(start) for line in scenario["lines"]) == 1


class TestJaggedOperators:
    scenario = "without_jagged_operators"

    @pytest.mark.parametrize("lacking", ["none", "forward only"])
    def test_other_operations_give_the_same_numbers(self, scenario, lacking):
        assert "NotImplementedError: Could not run 'aten::_" in str(scenario[f"{lacking}, alone"])
        assert scenario[lacking] == scenario["own"]
        assert "jagged-conversions" in scenario[f"{lacking}, rows"]


class TestDeterminism:
    scenario = "deterministic"

    def test_host_and_device_start_from_the_same_state(self, scenario):
        first, second = scenario["random"]
        assert first == second
        assert scenario["enabled"]


class TestFusedLogProbs:
    scenario = "fused_log_probs"

    def test_the_torch_backend_gives_the_plain_log_probs(self, scenario):
        for fused, plain in zip(scenario["fused"], scenario["plain"], strict=True):
            assert fused == pytest.approx(plain, rel=1e-5)

    @pytest.mark.parametrize(
        ("backend", "why"),
        [
            ("triton", "verl's triton kernels take CUDA tensors only, not mlu"),
            ("liger", "no module 'liger_kernel' is installed"),
            ("None", "verl knows the backends torch, triton and liger"),
        ],
    )
    def test_what_cannot_run_is_refused_before_the_model_is_built(self, scenario, backend, why):
        text = scenario[f"refused {backend}"]
        assert text.startswith("UnsupportedModelSettingError: use_fused_kernels=True")
        assert why in text
        assert "impl_backend=torch" in text
