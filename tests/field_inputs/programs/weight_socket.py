# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The socket through which verl sends weights to a colocated vLLM, of a driver with a Ray of its own."""

import json
import sys
import types
from pathlib import Path

import ray
import verl
from own_ray import own_ray

# verl's package needs vLLM, its transfer does not.
package = types.ModuleType("verl.workers.rollout.vllm_rollout")
package.__path__ = [str(Path(verl.__file__).parent / "workers" / "rollout" / "vllm_rollout")]
sys.modules[package.__name__] = package
vllm = types.ModuleType("verl.third_party.vllm")
vllm.VLLM_SLEEP_LEVEL = 2
sys.modules[vllm.__name__] = vllm
from verl.workers.config import RolloutConfig  # noqa: E402
from verl.workers.rollout.vllm_rollout.bucketed_weight_transfer import BucketedWeightSender  # noqa: E402
from verl.workers.rollout.vllm_rollout.vllm_rollout import ServerAdapter  # noqa: E402

with own_ray(devices=1, cpus=1):
    adapter = ServerAdapter(RolloutConfig(name="vllm", free_cache_engine=False), None, None)
    sender = BucketedWeightSender(adapter.zmq_handle, 1, use_shm=True)
    print(json.dumps({"socket": sender.zmq_handle, "job": ray.get_runtime_context().get_job_id()}))
