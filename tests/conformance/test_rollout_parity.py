# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The bring-up rollout on simulated devices draws what it draws on a plain CPU, with the log-probs of one forward."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment, needs_cpu_torch
from tiny_models import write_language_model

from verl_hw_sim import simulated_environment

HERE = Path(__file__).parent
VENDORS = {"cambricon": "mlu", "enflame": "gcu", "intel": "xpu", "metax": "cuda"}
TOLERANCE = 1e-5
TRAINERS_OWN = ("plain", "warm", "greedy")  # elsewhere the distribution drawn from is not the model's own

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rollout")
    write_language_model(folder / "model")

    def program(name: str, environment: dict[str, str]) -> dict:
        out = folder / f"{name}.json"
        finished = subprocess.run(
            [sys.executable, "-W", "ignore", str(HERE / "rollout_program.py"), str(folder / "model"), str(out)],
            env=clean_environment(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", PYTHONPATH=str(HERE), **environment),
            capture_output=True,
            text=True,
            timeout=scaled(280),
            check=False,
        )
        assert finished.returncode == 0, finished.stderr[-3000:]
        return json.loads(out.read_text())

    return program


@pytest.fixture(scope="module")
def reference(run):
    return run("reference", {"VERL_PLATFORM": "cpu_reference", "VERL_USE_EXTERNAL_MODULES": "cpu_reference"})


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("cambricon", marks=pytest.mark.ci),
        "enflame",  # dispatched like cambricon
        pytest.param("intel", marks=pytest.mark.ci),
        pytest.param("metax", marks=[pytest.mark.ci, needs_cpu_torch]),
    ],
)
def simulated(request, run):
    return request.param, run(request.param, simulated_environment(request.param, 2))


def worst(pairs) -> float:
    return max(abs(one - other) for ours, theirs in pairs for one, other in zip(ours, theirs, strict=True))


@pytest.mark.ci
def test_on_a_plain_cpu_log_probs_are_those_of_one_forward(reference):
    assert reference["device"] == "cpu"
    for kind in TRAINERS_OWN:
        assert worst((mine, host) for _, mine, host in reference["answers"][kind]) < TOLERANCE, kind


@pytest.mark.ci
def test_filtered_log_probs_are_those_of_the_distribution_drawn_from(reference):
    assert worst((mine, host) for _, mine, host in reference["answers"]["filtered"]) > 0.01


def test_the_model_lives_on_the_workers_device(simulated):
    vendor, found = simulated
    assert found["device"] == f"{VENDORS[vendor]}:1"
    assert found["parameters_on"] == [found["device"]]


def test_tokens_and_log_probs_are_those_of_the_plain_cpu(simulated, reference):
    _, found = simulated
    for kind, answers in reference["answers"].items():
        ours = found["answers"][kind]
        assert [tokens for tokens, *_ in ours] == [tokens for tokens, *_ in answers], kind
        assert worst((one[1], other[1]) for one, other in zip(ours, answers, strict=True)) < TOLERANCE, kind


def test_log_probs_are_those_of_one_forward_on_the_host(simulated):
    _, found = simulated
    for kind in TRAINERS_OWN:
        assert worst((mine, host) for _, mine, host in found["answers"][kind]) < TOLERANCE, kind


def test_weights_survive_sleep_and_can_be_loaded_from_the_model_folder(simulated):
    _, found = simulated
    plain = [tokens for tokens, *_ in found["answers"]["plain"]]
    assert found["after_sleep"] == plain
    assert found["loaded"] == plain


@pytest.mark.ci
def test_what_cannot_work_is_refused_by_name(reference):
    assert len(reference["refusals"]) == 17
    for name, said in reference["refusals"].items():
        assert said.startswith("RolloutConfigError"), (name, said)
        assert name in said
