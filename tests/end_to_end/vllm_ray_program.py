# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A real vLLM server on CPU in verl's own hands on a real Ray, beside an FSDP2 rank on the chosen device.

Usage: ``python vllm_ray_program.py MODEL_FOLDER OUT``; writes what was seen to OUT as JSON (stdout has vLLM's log).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import psutil
import ray
from own_ray import own_ray
from rollout_ray_program import change_weights, device_of, each, gap, generate, settings
from verl.checkpoint_engine.base import CheckpointEngineManager
from verl.plugin.platform import get_platform
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.engine_workers import ActorRolloutRefWorker
from verl.workers.rollout.llm_server import LLMServerManager

VLLM = {
    "name": "vllm",
    "enforce_eager": True,
    "free_cache_engine": False,  # vLLM has no sleep mode on CPU
    "enable_sleep_mode": False,
    "max_model_len": 64,
    "max_num_seqs": 8,
    "max_num_batched_tokens": 256,
}


def server_facts(server: Any) -> dict[str, Any]:
    """What a process of verl's vLLM server and those that vLLM started below it have in their environments."""
    names = (*get_platform().rollout_env_vars(), get_platform().visible_devices_envvar())
    below = [{name: one.environ().get(name) for name in names} for one in psutil.Process().children(recursive=True)]
    return {
        "platform": get_platform().vendor_name,
        "environment": {name: os.environ.get(name) for name in names},
        "below": [one for one in below if any(one.values())],
        "sleep level": server._resolve_sleep_level(),
    }


def rollout_facts(worker: Any) -> dict[str, Any]:
    return {"handle": worker.rollout.zmq_handle, "shared": worker.rollout.use_shm, "level": worker.rollout.sleep_level}


def scenario(model: Path) -> dict[str, Any]:
    device = get_platform().device_name
    config = settings(model, device, **VLLM)
    config.trainer.n_gpus_per_node = 1
    pool = RayResourcePool([1], use_gpu=True, max_colocate_count=3)
    actor = RayClassWithInitArgs(
        ray.remote(ActorRolloutRefWorker), config=config.actor_rollout_ref, role="actor_rollout"
    )
    trainers = RayWorkerGroup(pool, actor, device_name=device)
    trainers.init_model()
    servers = LLMServerManager.create(config, worker_group=trainers)
    checkpoint_config = omega_conf_to_dataclass(config.actor_rollout_ref.rollout.checkpoint_engine)
    manager = CheckpointEngineManager(checkpoint_config, trainers, servers.get_replicas())
    client = servers.get_client()
    facts: dict[str, Any] = {"wanted environment": get_platform().rollout_env_vars()}
    manager.update_weights(global_steps=1)
    facts["trainer devices"] = each(trainers.workers, device_of)
    facts["clients"] = each(trainers.workers, rollout_facts)
    facts["servers"] = each(servers.server_handles, server_facts)
    facts["gap"] = gap(trainers, generate(client))
    each(trainers.workers, change_weights)
    facts["gap stale"] = gap(trainers, generate(client))
    manager.update_weights(global_steps=2)
    facts["gap synced"] = gap(trainers, generate(client))
    return facts


if __name__ == "__main__":
    with own_ray(devices=1, cpus=6):
        Path(sys.argv[2]).write_text(json.dumps(scenario(Path(sys.argv[1]))))
