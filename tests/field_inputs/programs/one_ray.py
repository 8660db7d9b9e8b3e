# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A driver with two workers in a Ray of its own: where their tensors lie, and what happens without FlagCX.

Answers ``{"devices": [...], "sum": ..., "error": ..., "flagcx": ...}``; the last is empty where a worker group could be
built although USE_FLAGCX asks for a library that is not installed.
"""

import json
import os

import ray
import torch
from own_ray import own_ray
from verl.single_controller.base.worker import Worker
from verl.single_controller.ray.base import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
from verl.utils.device import get_device_name


@ray.remote
class Ones(Worker):
    def get(self):
        return torch.ones(2, device=get_device_name())


def workers(number: int) -> RayWorkerGroup:
    pool = RayResourcePool([number], use_gpu=True, max_colocate_count=1)
    return RayWorkerGroup(pool, RayClassWithInitArgs(cls=Ones), device_name=get_device_name())


answer = {"devices": [], "sum": None, "error": "", "flagcx": ""}
with own_ray(devices=3, cpus=12):
    tensors = workers(2).execute_all_sync("get")
    answer["devices"] = [str(tensor.device) for tensor in tensors]
    try:
        answer["sum"] = torch.cat(tensors).sum().item()
    except RuntimeError as error:
        answer["error"] = str(error)
    os.environ["USE_FLAGCX"] = "1"
    try:
        workers(1)
    except Exception as error:  # noqa: BLE001 - which one it is, is the answer
        answer["flagcx"] = f"{type(error).__name__}: {error}"
print(json.dumps(answer))
