# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's way to vLLM is not disturbed by our platforms: a real vLLM on CPU beside a simulated accelerator.

Skipped, with what the installer said, where vLLM for CPU cannot be installed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment
from tiny_models import write_model_for_vllm
from vllm_environment import NoVllmError, python_with_vllm

from verl_hw_sim import simulated_environment
from verl_hw_tools.demo.rl.launch import train
from verl_hw_tools.demo.rl.settings import RlSettings, overrides, write_data
from verl_hw_tools.demo.workspace import Workspace

HERE = Path(__file__).parent
TESTS = HERE.parent
BUCKET_BYTES = 1 << 20
ROLLOUT = "actor_rollout_ref.rollout"
VLLM_OPTIONS = [
    f"{ROLLOUT}.name=vllm",
    f"{ROLLOUT}.enforce_eager=True",
    f"{ROLLOUT}.free_cache_engine=False",  # vLLM has no sleep mode on CPU
    f"+{ROLLOUT}.enable_sleep_mode=False",
    f"{ROLLOUT}.max_model_len=128",
    f"{ROLLOUT}.max_num_seqs=64",
    f"{ROLLOUT}.max_num_batched_tokens=1024",
    f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes=1",
]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return python_with_vllm()
    except NoVllmError as error:
        pytest.skip(f"vLLM for CPU cannot be installed: {error}")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("vllm") / "model"
    write_model_for_vllm(folder, intermediate=4096)  # the weights of an MLP have 1.5 MiB, more than the bucket
    return folder


def environment_of(devices: int, **more: str) -> dict[str, str]:
    return clean_environment(
        **simulated_environment("cambricon", devices),
        VERL_PLATFORM="cambricon",
        VERL_USE_EXTERNAL_PLUGINS="cambricon",
        PYTHONPATH=os.pathsep.join((str(HERE), str(TESTS / "support"))),
        OMP_NUM_THREADS="1",
        HF_HUB_OFFLINE="1",
        VLLM_CPU_KVCACHE_SPACE="1",
        VLLM_CPU_OMP_THREADS_BIND="nobind",
        VLLM_NO_USAGE_STATS="1",
        **more,
    )


def run_program(python: Path, program: str, model: Path, devices: int, **environment: str) -> dict:
    out = model.with_name(f"{program}.json")
    finished = subprocess.run(
        [str(python), "-W", "ignore", str(HERE / program), str(model), str(out)],
        env=environment_of(devices, **environment),
        capture_output=True,
        text=True,
        timeout=scaled(800),
        check=False,
    )
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-6000:]
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def seen(python, model) -> dict:
    # The engine in the program's process, its worker in one of its own.
    return run_program(python, "vllm_program.py", model, 2, VLLM_ENABLE_V1_MULTIPROCESSING="0")


@pytest.fixture(scope="module")
def seen_in_ray(python, model) -> dict:
    return run_program(python, "vllm_ray_program.py", model, 1, RAY_raylet_start_wait_time_s="120")


@pytest.fixture(scope="module")
def trained(python, tmp_path_factory) -> Workspace:
    """Three steps of verl's unmodified trainer with the GRPO demo's options, but for the rollout."""
    settings = RlSettings(algorithm="grpo", steps=3, nodes=1, processes=1, seed=0)
    workspace = Workspace(tmp_path_factory.mktemp("trainer"))
    workspace.training.root.mkdir(parents=True)
    write_model_for_vllm(workspace.model, intermediate=4096)
    write_data(workspace.data, settings)
    own = f"{ROLLOUT}.name="
    options = [one for one in overrides(settings, workspace, workspace.training) if not one.startswith(own)]
    log = workspace.training.driver_log
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "executable", str(python))  # the trainer's
        code = train(
            settings,
            workspace,
            [*options, *VLLM_OPTIONS],
            environment=environment_of(1),
            watch=lambda: log.exists() and log.stat().st_size,
            stall_seconds=scaled(600),
        )
    assert code == 0, log.read_text()[-6000:]
    return workspace


def test_both_processes_are_on_our_platform_and_vllm_on_its_own_device(seen):
    assert seen["platform"] == seen["worker"]["platform"] == "cambricon"
    assert seen["worker"]["pid"] != seen["pid"]
    assert seen["worker"]["device"] == "cpu"


def test_device_uuids_and_handles_are_one_for_each_rank(seen):
    assert len(set(seen["uuids"])) == 2
    assert all(seen["uuids"])
    assert len(set(seen["handles"])) == 2
    assert seen["worker"]["handle"] == seen["handles"][0]


def test_rollout_variables_are_in_vllms_process(seen):
    assert seen["wanted environment"]
    assert seen["worker"]["environment"] == seen["wanted environment"]


def test_weights_larger_than_the_bucket_arrive_bit_by_bit_each_time(seen):
    assert seen["shared"] == [True, True]
    assert seen["largest"] > BUCKET_BYTES
    first, second = seen["syncs"]
    assert first["found"] == first["sent"]
    assert second["found"] == second["sent"]
    assert first["sent"] != second["sent"]
    assert seen["left in /dev/shm"] == []


def test_it_generates_with_them(seen):
    assert seen["tokens"] == 8
    assert seen["gap"] < 1e-4
    assert seen["gap of the first weights"] > 1e-2


def test_verls_server_in_ray_and_what_it_starts_have_the_rollout_variables(seen_in_ray):
    [server] = seen_in_ray["servers"]
    assert server["platform"] == "cambricon"
    assert server["below"]
    for one in (server["environment"], *server["below"]):
        assert one.items() >= seen_in_ray["wanted environment"].items()
        assert one["MLU_VISIBLE_DEVICES"] == "0"


def test_the_sleep_level_is_verls_where_the_chip_has_no_limit(seen_in_ray):
    assert [one["sleep level"] for one in seen_in_ray["servers"]] == [2]
    assert [one["level"] for one in seen_in_ray["clients"]] == [2]


def test_log_probs_are_the_trainers_after_each_sync_through_shared_memory(seen_in_ray):
    assert seen_in_ray["trainer devices"] == ["mlu:0"]
    assert [one["shared"] for one in seen_in_ray["clients"]] == [True]
    assert seen_in_ray["gap"] < 1e-4
    assert seen_in_ray["gap stale"] > 1e-2
    assert seen_in_ray["gap synced"] < 1e-4


def test_verls_trainer_trains_on_the_device_what_vllm_generates(trained):
    steps = [json.loads(line)["data"] for line in trained.training.metrics.read_text().splitlines()]
    assert [step["training/global_step"] for step in steps] == [1, 2, 3]
    for step in steps:
        assert step["actor/grad_norm"] > 0
        assert step["training/rollout_probs_diff_max"] < 1e-5  # measured 3e-8: vLLM has each step's weights
    assert steps[1]["actor/kl_loss"] > 1e-2  # measured 0.2: with those of the step before it would be far off
    facts = [json.loads(line) for line in trained.training.facts.read_text().splitlines()]
    assert {fact["platform"] for fact in facts} == {"cambricon"}
    assert {fact["current_device"] for fact in facts} == {"mlu:0"}


def test_an_environment_that_cannot_be_made_is_said_in_the_installers_words(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NoVllmError, match="no-such-distribution-of-verl-hw"):
        python_with_vllm(("--offline", "no-such-distribution-of-verl-hw==1"), seconds=120)
    assert not list(tmp_path.glob("verl-hw-tests/vllm-*/"))


def test_an_installer_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NoVllmError, match="longer than"):
        python_with_vllm(seconds=0.001)
