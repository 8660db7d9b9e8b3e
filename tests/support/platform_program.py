# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Print, as JSON, what the platform answers that verl resolves in this process, device calls included."""

import json

import torch
from verl.plugin.platform import get_platform
from verl.utils import device as verl_device


def refusal(call, *args) -> str | None:
    """Type of the exception that a call raises, or None."""
    try:
        call(*args)
    except Exception as error:  # noqa: BLE001 - which one it is, is the question
        return type(error).__name__
    return None


def draws(seed: int, name: str) -> list[float]:
    get_platform().manual_seed_all(seed)
    return torch.rand(3, device=name).tolist()


def main() -> None:
    platform = get_platform()
    name = platform.device_name
    platform.set_device(1)
    with platform.nvtx_range("step"):
        torch.ones(2, device=name).sum()
    platform.set_allocator_settings("expandable_segments:True")
    platform.profiler_start()
    platform.profiler_stop()
    platform.empty_cache()
    platform.synchronize()
    answers = {
        "class": type(platform).__name__,
        "device": name,
        "vendor": platform.vendor_name,
        "module": platform.device_module.__name__,
        "count": platform.device_count(),
        "current": platform.current_device(),
        "default_device_of_tensors": torch.empty(1, device=name).device.index,
        "bad_ordinal": refusal(platform.set_device, platform.device_count()),
        "capability": platform.get_device_capability(),
        "ccl": platform.communication_backend_name(),
        "ccl_known_to_torch": torch.distributed.is_backend_available(platform.communication_backend_name()),
        "visible": platform.visible_devices_envvar(),
        "ray_resource": verl_device.get_resource_name(),
        "ray_options": platform.ray_resource_options(1),
        "noset": platform.ray_noset_envvars(),
        "ipc": platform.is_ipc_supported(),
        "rollout_env": platform.rollout_env_vars(),
        "collective_module": platform.get_collective_module(),
        "uuids": [platform.get_device_uuid(index).rsplit("-", 1)[1] for index in range(platform.device_count())],
        "same_seed_same_draws": draws(5, name) == draws(5, name) != draws(6, name),
        "platform_available": [platform.is_platform_available(), platform.is_platform_available(True)],
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
