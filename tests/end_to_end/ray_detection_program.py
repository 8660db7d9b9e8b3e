# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Print, as JSON, the platform that verl resolves in a driver, a CPU-only Ray actor and a Ray actor with a device."""

import json
import logging
import os

import ray
from machine_speed import scaled


class Witness:
    def platform(self) -> dict:
        from verl.plugin.platform import get_platform

        platform = get_platform()
        return {
            "platform": platform.vendor_name,
            "device": platform.device_name,
            "capability_values": len(platform.get_device_capability()),
            "mask": os.environ.get("CUDA_VISIBLE_DEVICES"),
        }


def main() -> None:
    ray.init(
        address="local",  # or a cluster that someone else runs on this machine would be joined
        num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
    )  # fmt: skip
    witness = ray.remote(Witness)
    hidden = {"env_vars": {"CUDA_VISIBLE_DEVICES": ""}}
    actors = {
        "cpu_actor": witness.options(num_cpus=1, runtime_env=hidden).remote(),
        "device_actor": witness.options(num_gpus=1).remote(),
    }
    asked = {name: actor.platform.remote() for name, actor in actors.items()}
    os.environ.update(hidden["env_vars"])  # Ray refuses to start under such a mask
    answers = {"driver": Witness().platform()}
    answers.update({name: ray.get(reference, timeout=scaled(240)) for name, reference in asked.items()})
    print(json.dumps(answers))
    ray.shutdown()


if __name__ == "__main__":
    main()
