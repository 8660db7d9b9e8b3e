# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The socket through which verl sends weights to a colocated vLLM, in a worker of a driver with a Ray of its own.

Answers ``{"sender": ..., "receiver": ..., "job": ...}``; the receiver is in a child of the worker, as vLLM's is.
"""

import json
import multiprocessing
import sys
import types
from pathlib import Path

import ray
import verl
from own_ray import own_ray


def transfer():
    """verl's transfer; its package needs vLLM, the transfer does not."""
    package = types.ModuleType("verl.workers.rollout.vllm_rollout")
    package.__path__ = [str(Path(verl.__file__).parent / "workers" / "rollout" / "vllm_rollout")]
    vllm = types.ModuleType("verl.third_party.vllm")
    vllm.VLLM_SLEEP_LEVEL = 2
    sys.modules.update({module.__name__: module for module in (package, vllm)})
    from verl.workers.rollout.vllm_rollout import bucketed_weight_transfer

    return bucketed_weight_transfer


def receiver(handle, answers):
    answers.put(transfer().BucketedWeightReceiver(handle, None, use_shm=True).zmq_handle)


@ray.remote
class Worker:
    def sockets(self):
        sender = transfer().BucketedWeightSender
        from verl.workers.config import RolloutConfig
        from verl.workers.rollout.vllm_rollout.vllm_rollout import ServerAdapter

        handle = ServerAdapter(RolloutConfig(name="vllm", free_cache_engine=False), None, None).zmq_handle
        answers = multiprocessing.get_context("fork").Queue()
        child = multiprocessing.get_context("fork").Process(target=receiver, args=(handle, answers))
        child.start()
        received = answers.get(timeout=120)
        child.join()
        return {"sender": sender(handle, 1, use_shm=True).zmq_handle, "receiver": received}


with own_ray(devices=1, cpus=1):
    print(json.dumps({**ray.get(Worker.remote().sockets.remote()), "job": ray.get_runtime_context().get_job_id()}))
