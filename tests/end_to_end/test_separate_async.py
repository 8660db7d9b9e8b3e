# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's separate asynchronous trainer for some steps: rollout on a device of its own, weights through our engine."""

import json
import subprocess
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment

from verl_hw_sim import simulated_environment
from verl_hw_tools.demo.assets import write_model, write_tokenizer
from verl_hw_tools.demo.rl.launch import RAY_STARTED_TOO_SLOWLY
from verl_hw_tools.demo.rl.settings import RlSettings, launch_command, overrides, write_data
from verl_hw_tools.demo.workspace import Workspace

STEPS = 3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def separate(workspace: Workspace, settings: RlSettings) -> list[str]:
    """The demo's options, with one device for the trainer and one for the rollout.

    The trainer's device keeps a replica as well: verl 0.9.1 ends in a TypeError of its own with hybrid_engine=False.
    """
    rollout = "actor_rollout_ref.rollout"
    return [
        *overrides(settings, workspace, workspace.training),
        "trainer.v1.trainer_mode=separate_async",
        "trainer.v1.separate_async.parameter_sync_step=1",
        f"{rollout}.nnodes=1",
        f"{rollout}.n_gpus_per_node=1",
        f"{rollout}.checkpoint_engine.backend=nccl",
        f"+{rollout}.checkpoint_engine.engine_kwargs.nccl={{checksum:true,bucket_timeout:{scaled(300):.0f}}}",
    ]


def test_three_steps(tmp_path: Path) -> None:
    settings = RlSettings(algorithm="grpo", steps=STEPS, nodes=1, processes=1, seed=0)
    workspace = Workspace(tmp_path)
    write_tokenizer(workspace.model)
    write_model(workspace.model, 0)
    write_data(workspace.data, settings)
    workspace.training.root.mkdir()
    command = launch_command(settings, separate(workspace, settings))
    command = [part.replace("ray_init.num_gpus=1", "ray_init.num_gpus=2") for part in command]
    environment = clean_environment(
        **simulated_environment("cambricon", 2),
        VERL_PLATFORM="cambricon",
        OMP_NUM_THREADS="1",
        HF_HUB_OFFLINE="1",
        VERL_FILE_LOGGER_PATH=str(workspace.training.metrics),
        TOKENIZERS_PARALLELISM="false",
        RAY_enable_worker_prestart="0",
        RAY_prestart_worker_first_driver="0",
    )
    for _attempt in range(3):
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=scaled(1500), check=False
        )
        if RAY_STARTED_TOO_SLOWLY not in done.stdout + done.stderr:
            break
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    logged = [json.loads(line) for line in workspace.training.metrics.read_text(encoding="utf-8").splitlines()]
    trained = [line for line in logged if "critic/rewards/mean" in line["data"]]
    assert [line["step"] for line in trained] == list(range(1, STEPS + 1))
