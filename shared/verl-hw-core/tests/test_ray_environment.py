# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which variables a job's workers get, and whose value wins."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from detectionkit import METAX

from verl_hw_core.ray_support import environment

SPEC = replace(METAX, launch_env=(("MCCL_MAX_NCHANNELS", "16"), ("MACA_MPS_MODE", "1")))


def test_platform_launch_variables_and_our_switches():
    environ = {
        "MACA_MPS_MODE": "0",
        "VERL_PLATFORM": "maca",
        "VERL_HW_SIM": "metax:2",
        "VERL_HW_MODEL_PATCHES": "off",
        "USE_FLAGCX": "1",
        "VERL_USE_EXTERNAL_PLUGINS": "metax",
        "CUDA_VISIBLE_DEVICES": "0",
        "MACA_VISIBLE_DEVICES": "1",
        "PATH": "/bin",
        "VERL_LOGGING_LEVEL": "INFO",
    }
    assert environment.variables(SPEC, environ) == {
        "MCCL_MAX_NCHANNELS": "16",
        "MACA_MPS_MODE": "0",  # the user's
        "VERL_PLATFORM": "metax",
        "VERL_HW_SIM": "metax:2",
        "VERL_HW_MODEL_PATCHES": "off",
        "USE_FLAGCX": "1",
        "VERL_USE_EXTERNAL_PLUGINS": "metax",
    }
    assert environment.variables(SPEC, {}) == {**dict(SPEC.launch_env), "VERL_PLATFORM": "metax"}


for_job, for_worker = environment.get_ppo_ray_runtime_env.__wrapped__, environment.create_worker.__wrapped__


@pytest.fixture
def chosen(monkeypatch):
    monkeypatch.setattr(environment, "our_platform", lambda: SimpleNamespace(spec=SPEC))


def test_a_job_gets_verls_variables_and_ours(chosen):
    found = for_job(lambda config=None: {"env_vars": {"NCCL_DEBUG": "WARN"}, "working_dir": None}, None)
    assert found["working_dir"] is None
    assert found["env_vars"]["NCCL_DEBUG"] == "WARN"
    assert found["env_vars"]["VERL_PLATFORM"] == "metax"


def test_a_variable_of_the_submitted_job_is_left_to_it(chosen, monkeypatch):
    # Ray refuses the same name in the job's and in ray.init's runtime environment, even with one value.
    job = {"runtime_env": {"env_vars": {"MACA_MPS_MODE": "0", "VERL_PLATFORM": "metax"}}}
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps(job))
    found = for_job(lambda: {"env_vars": {}})
    assert "MACA_MPS_MODE" not in found["env_vars"]
    assert "VERL_PLATFORM" not in found["env_vars"]
    assert found["env_vars"]["MCCL_MAX_NCHANNELS"] == "16"


def test_a_worker_gets_them_whoever_started_ray(chosen):
    factory = SimpleNamespace(_options={"name": "w", "runtime_env": {"env_vars": {"RANK": "1"}, "nsight": {}}})
    factory.update_options = factory._options.update
    assert for_worker(lambda factory, *_: factory._options, factory, "group", 0) is factory._options
    assert factory._options["runtime_env"]["nsight"] == {}
    assert factory._options["runtime_env"]["env_vars"]["RANK"] == "1"
    assert factory._options["runtime_env"]["env_vars"]["VERL_PLATFORM"] == "metax"


def test_another_platforms_run_is_left_alone(monkeypatch):
    monkeypatch.setattr(environment, "our_platform", lambda: None)
    monkeypatch.setattr(environment.vendors, "specs", lambda: ())
    given = {"env_vars": {"A": "1"}}
    assert for_job(lambda: given) is given
    factory = SimpleNamespace(_options={})
    for_worker(lambda factory: None, factory)
    assert factory._options == {}


def test_a_head_without_accelerator_is_told_how_to_choose(monkeypatch, caplog):
    monkeypatch.setattr(environment, "our_platform", lambda: None)
    monkeypatch.setattr(environment.vendors, "specs", lambda: (SPEC,))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.delenv("VERL_PLATFORM", raising=False)
    for_job(lambda: {})
    assert "set VERL_PLATFORM here (metax)" in caplog.text
    caplog.clear()
    monkeypatch.setenv("VERL_PLATFORM", "nvidia")
    for_job(lambda: {})
    assert caplog.text == ""
