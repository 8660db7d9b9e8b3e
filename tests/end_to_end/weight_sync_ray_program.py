# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's CheckpointEngineManager between a trainer and standalone replicas in resource pools of their own.

Two FSDP2 ranks, of which one sends, two replicas of the bring-up rollout, ``checkpoint_engine.backend=nccl`` and no
``custom_backend_module``; requests go on throughout.

Usage: ``python weight_sync_ray_program.py MODEL_FOLDER``; prints what was seen as JSON in the last line.
"""

import asyncio
import hashlib
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ray
import torch
from machine_speed import scaled
from own_ray import own_ray
from rollout_ray_program import PROMPTS, change_weights, each, said, server_device, settings
from verl.checkpoint_engine.base import CheckpointEngineManager
from verl.plugin.platform import get_platform
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.engine_workers import ActorRolloutRefWorker
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerManager


def digest(tensor: torch.Tensor) -> str:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()[:16] + str(tuple(tensor.shape))


def trainer_weights(worker: Any) -> dict[str, str]:
    """All ranks call this together: it gathers."""
    tensors, _ = worker.actor.engine.get_per_tensor_param()
    return {name: digest(tensor) for name, tensor in tensors}


def server_weights(server: Any) -> dict[str, str]:
    return {name: digest(tensor) for name, tensor in server._model._module.named_parameters()}


def engine_of(worker: Any) -> dict[str, Any]:
    engine = worker.checkpoint_engine
    session = engine._session
    return {
        "class": type(engine).__name__,
        "backend": engine.backend_name(),
        "rank": engine.rank,
        "group": None if session is None else session.me.group,
        "process": os.getpid(),
    }


def die_after_two_tensors(worker: Any) -> None:
    own = worker.checkpoint_engine.receive_weights

    async def receive(**given: Any) -> Any:
        seen = 0
        async for pair in own(**given):
            if seen == 2:
                os._exit(7)
            seen += 1
            yield pair

    worker.checkpoint_engine.receive_weights = receive


class Traffic:
    """Requests without pause, in a thread of its own; notes with which weights each answer ended."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.steps: list[int] = []
        self.errors: list[str] = []

    def __enter__(self) -> "Traffic":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(scaled(120))

    async def _run(self) -> None:
        params = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                answer = await self._client.generate(
                    f"request-{number}", prompt_ids=PROMPTS[number % len(PROMPTS)], sampling_params=dict(params)
                )
                self.steps.append(answer.extra_fields["global_steps"])
            except Exception as error:  # noqa: BLE001 - the test judges it
                self.errors.append(f"{type(error).__name__}: {error}")
                await asyncio.sleep(0.2)

    def wait_for(self, step: int) -> bool:
        deadline = time.monotonic() + scaled(60)
        while step not in self.steps and time.monotonic() < deadline:
            time.sleep(0.05)
        return step in self.steps


def equal(trainers: Any, replicas: list[Any]) -> list[bool]:
    """For each replica, whether its server holds the trainer's weights, bit by bit."""
    wanted = each(trainers.workers, trainer_weights)[0]
    found = each([replica.server_handle for replica in replicas], server_weights)
    return [len(one) > 0 and all(wanted.get(name) == value for name, value in one.items()) for one in found]


def update(manager: Any, trainers: Any, step: int) -> dict[str, Any]:
    each(trainers.workers, change_weights)
    stale = equal(trainers, manager.replicas)
    began = time.monotonic()
    metrics = manager.update_weights(global_steps=step)
    seconds = time.monotonic() - began
    workers = trainers.workers + [worker for replica in manager.replicas for worker in replica.workers]
    return {
        "stale": stale,
        "equal": equal(trainers, manager.replicas),
        "metrics": metrics,
        "seconds": seconds,
        "engines": each(workers, engine_of),
    }


def scenario(model: Path) -> dict[str, Any]:
    config = settings(model, get_platform().device_name)
    rollout = config.actor_rollout_ref.rollout
    rollout.nnodes, rollout.n_gpus_per_node = 1, 2
    rollout.checkpoint_engine.backend = "nccl"
    rollout.checkpoint_engine.engine_kwargs = {
        "nccl": {"bucket_timeout": scaled(60), "rendezvous_timeout": scaled(120)}
    }
    pool = RayResourcePool([2], use_gpu=True, max_colocate_count=3)
    actor = RayClassWithInitArgs(ray.remote(ActorRolloutRefWorker), config=config.actor_rollout_ref, role="actor")
    trainers = RayWorkerGroup(pool, actor, device_name=get_platform().device_name)
    trainers.init_model()
    servers = LLMServerManager.create(config=config)
    manager = CheckpointEngineManager(
        omega_conf_to_dataclass(rollout.checkpoint_engine), trainers, servers.get_replicas()
    )
    first, second = manager.replicas
    facts: dict[str, Any] = {"updates": {"1": update(manager, trainers, 1)}}
    with Traffic(servers.get_client(client_cls=FullyAsyncLLMServerClient)) as traffic:
        for step in (2, 3):
            facts["updates"][str(step)] = update(manager, trainers, step)
            facts[f"answered with {step}"] = traffic.wait_for(step)
    facts["errors"] = traffic.errors
    facts["devices"] = each([one.server_handle for one in (first, second)], server_device)
    manager.remove_replicas([second])
    facts["without second"] = update(manager, trainers, 4)
    manager.add_replicas([second])
    facts["with second again"] = update(manager, trainers, 5)
    each(second.workers, die_after_two_tensors)
    facts["killed"] = said(lambda: manager.update_weights(global_steps=6))
    manager.remove_replicas([second])
    facts["after the kill"] = update(manager, trainers, 7)
    return facts


if __name__ == "__main__":
    with own_ray(devices=4, cpus=16, log_to_driver=False):
        print(json.dumps(scenario(Path(sys.argv[1]))))
