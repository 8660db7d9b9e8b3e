# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Print, as JSON, which devices verl's workers get from a real Ray. ``ray_workers_program.py <scenario> <options>``."""

import json
import logging
import os
import shutil
import sys
import tempfile
import time
from typing import Any

import ray
from machine_speed import scaled

RESTART_SECONDS = 300
QUIET = {"log_to_driver": False, "logging_level": logging.ERROR}


def witness_class() -> Any:
    """A verl worker that says which device it has, asked of the device itself."""
    from verl.single_controller.base import Worker
    from verl.single_controller.base.decorator import Dispatch, register

    class Witness(Worker):
        @register(Dispatch.ONE_TO_ALL)
        def look(self) -> dict[str, Any]:
            import torch
            from verl.plugin.platform import get_platform

            platform = get_platform()
            found = {
                "rank": self.rank,
                "pid": os.getpid(),
                "node": ray.get_runtime_context().get_node_id(),
                "platform": platform.vendor_name,
                "environment": {name: os.environ.get(name) for name in WATCHED},
                "ids": ray.get_runtime_context().get_accelerator_ids().get(platform.ray_resource_name()),
            }
            if self.world_size > 0 and os.environ.get("WITHOUT_DEVICE") is None:
                device = platform.device_module
                before = [device.memory_allocated(ordinal) for ordinal in range(device.device_count())]
                kept = torch.ones(1 << 16, device=platform.device_name)
                after = [device.memory_allocated(ordinal) for ordinal in range(device.device_count())]
                found |= {
                    "ordinal": platform.current_device(),
                    "card": device.get_device_properties(platform.current_device()).uuid,
                    "written": [ordinal for ordinal, (a, b) in enumerate(zip(before, after, strict=True)) if a != b],
                    "sum": float(kept.sum()),
                }
            return found

    return Witness


WATCHED = ("LOCAL_RANK", "VERL_PLATFORM", "VERL_HW_SIM", "VERL_HW_MODEL_PATCHES", "LAUNCHED", "ZE_AFFINITY_MASK")


def group(pool: Any, **options: Any) -> Any:
    from verl.plugin.platform import get_platform
    from verl.single_controller.ray import RayClassWithInitArgs, RayWorkerGroup

    factory = RayClassWithInitArgs(ray.remote(witness_class()))
    factory.update_options(options)
    return RayWorkerGroup(
        resource_pool=pool, ray_cls_with_init=factory, device_name=get_platform().device_name, worker_env=ENVIRONMENT
    )


ENVIRONMENT: dict[str, str] = {}


def refused(function: Any) -> dict[str, Any]:
    """Which error a call ends in, and after how many seconds."""
    begin = time.monotonic()
    try:
        function()
    except Exception as error:  # noqa: BLE001 - the test judges it
        return {"error": type(error).__name__, "text": str(error), "seconds": time.monotonic() - begin}
    return {"error": None, "text": "", "seconds": time.monotonic() - begin}


def after_restart(worker: Any, killed: int) -> dict[str, Any]:
    """Kill the process `killed` of a worker that Ray starts again, and ask the new one."""
    ray.kill(worker, no_restart=False)
    deadline = time.monotonic() + scaled(RESTART_SECONDS)
    while True:
        try:
            witness = ray.get(worker.look.remote(), timeout=scaled(RESTART_SECONDS))
            if witness["pid"] != killed:  # ray.kill() returns at once: the old process may still answer
                return witness
            problem: Exception = TimeoutError(f"process {killed} still answers")
        except ray.exceptions.RayActorError as error:
            problem = error
        if time.monotonic() > deadline:
            raise problem
        time.sleep(0.5)


def one_node(options: dict[str, Any], folder: str) -> dict[str, Any]:
    """Two groups that share two devices, a pool beside them, a worker without device, a restart, and refusals."""
    ray.init(address="local", num_cpus=16, include_dashboard=False, _temp_dir=folder, **options["ray"], **QUIET)
    from verl.plugin.platform import get_platform
    from verl.single_controller.ray import RayResourcePool, ResourcePoolManager

    shared = RayResourcePool([2], use_gpu=True, max_colocate_count=2)
    first, second = group(shared, max_restarts=1), group(shared)
    beside = group(RayResourcePool([1], use_gpu=True, max_colocate_count=1))
    ENVIRONMENT["WITHOUT_DEVICE"] = "1"
    without = group(RayResourcePool([1], use_gpu=False, max_colocate_count=1))
    groups = {"first": first, "second": second, "beside": beside, "without": without}
    found: dict[str, Any] = {name: workers.look() for name, workers in groups.items()}
    found["resource"] = get_platform().ray_resource_name()
    found["restarted"] = after_restart(first.workers[1], found["first"][1]["pid"])
    found["too_many"] = refused(RayResourcePool([3], use_gpu=True, max_colocate_count=1).get_placement_groups)
    manager = ResourcePoolManager(resource_pool_spec={"pool": [9]}, mapping={})
    found["manager"] = refused(manager.create_resource_pool)
    return found


def two_nodes(options: dict[str, Any], folder: str) -> dict[str, Any]:
    """A cluster that runs already, with a head without devices: what the driver sets reaches its workers."""
    from ray._private import utils
    from ray.cluster_utils import Cluster

    utils.write_ray_address = lambda *_, **__: None  # or ray.init() of other programs on this machine would join it
    node = {"include_dashboard": False, "num_cpus": 4}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "num_gpus": 0, "temp_dir": folder})
    for environment in options["nodes"]:
        cluster.add_node(**node, **options["ray"], env_vars=environment)
    os.environ.update(options["driver"])  # after the cluster: it cannot have inherited them
    from verl.plugin.platform import get_platform
    from verl.single_controller.ray import RayResourcePool
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    ray.init(address=cluster.address, runtime_env=get_ppo_ray_runtime_env(), **QUIET)
    cpu_actor = ray.remote(num_cpus=1)(CpuActor).remote()
    workers = group(RayResourcePool([2, 2], use_gpu=True, max_colocate_count=1)).look()
    return {
        "driver": get_platform().vendor_name,
        "workers": workers,
        "cpu_actor": ray.get(cpu_actor.look.remote(), timeout=scaled(120)),
    }


class CpuActor:
    def look(self) -> dict[str, Any]:
        from verl.plugin.platform import get_platform

        return {
            "platform": get_platform().vendor_name,
            "environment": {name: os.environ.get(name) for name in WATCHED},
        }


def neither(options: dict[str, Any], folder: str) -> dict[str, Any]:
    """A cluster that does not count the device at all."""
    ray.init(address="local", num_cpus=2, num_gpus=0, include_dashboard=False, _temp_dir=folder, **QUIET)
    from verl.plugin.platform import get_platform
    from verl.single_controller.ray import RayResourcePool

    get_platform()  # its first answer takes imports, which are no part of the refusal's time
    return refused(RayResourcePool([2], use_gpu=True, max_colocate_count=1).get_placement_groups)


def submitted(options: dict[str, Any], folder: str) -> dict[str, Any]:
    """What `ray job submit` runs: the cluster's address and the job's environment come from Ray."""
    from verl.plugin.platform import get_platform
    from verl.single_controller.ray import RayResourcePool
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    ray.init(runtime_env=get_ppo_ray_runtime_env(), **QUIET)
    workers = group(RayResourcePool([2], use_gpu=True, max_colocate_count=1)).look()
    return {"driver": get_platform().vendor_name, "workers": workers}


SCENARIOS = {scenario.__name__: scenario for scenario in (one_node, two_nodes, neither, submitted)}


def main() -> None:
    folder = tempfile.mkdtemp(prefix="vhw", dir="/tmp")  # short: Ray puts sockets below it
    try:
        print(json.dumps(SCENARIOS[sys.argv[1]](json.loads(sys.argv[2]), folder)))
        ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
