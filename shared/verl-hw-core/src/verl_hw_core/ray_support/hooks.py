# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Where verl's Ray code is changed: when verl imports it, and never for a platform that is not ours.

At that moment the platform may still be open, so the replacements ask for it when they are called.
"""

import sys
from types import ModuleType

import wrapt

from verl_hw_core import upstream

_MANAGER = "verl.plugin.platform.platform_manager"
_installed: set[str] = set()


def install() -> None:
    """Change verl's Ray code once it is imported; a second call changes nothing."""
    for name, hook in (
        ("verl.single_controller.base.worker", _change_worker),
        ("verl.single_controller.ray.base", _change_worker_groups),
        ("verl.trainer.constants_ppo", _change_trainers),
    ):
        if name not in _installed:
            _installed.add(name)
            wrapt.register_post_import_hook(hook, name)


def _change_worker(module: ModuleType) -> None:
    from verl_hw_core.ray_support import worker_device as device

    name = "_setup_env_cuda_visible_devices"
    own = upstream.original(device.WORKER_ROW, module.Worker, name)
    upstream.replace(device.WORKER_ROW, module.Worker, name, device.replacement(own))


def _change_worker_groups(module: ModuleType) -> None:
    if _is_anothers_run():
        return
    from verl_hw_core.ray_support import environment, placement

    for row, owner, name, replacement in (
        (placement.POOLS_ROW, module.RayResourcePool, "get_placement_groups", placement.placing),
        (placement.CHECK_ROW, module.ResourcePoolManager, "_check_resource_available", placement.checking),
        (environment.WORKER_ROW, module.RayClassWithInitArgs, "__call__", environment.for_workers),
    ):
        upstream.replace(row, owner, name, replacement(upstream.original(row, owner, name)))


def _change_trainers(module: ModuleType) -> None:
    from verl_hw_core.ray_support import environment

    own = upstream.original(environment.JOB_ROW, module, "get_ppo_ray_runtime_env")
    upstream.replace(environment.JOB_ROW, module, "get_ppo_ray_runtime_env", environment.for_jobs(own))


def _is_anothers_run() -> bool:
    """Whether verl's platform is fixed already, and not ours."""
    from verl_hw_core.platform import AcceleratorPlatform

    current = getattr(sys.modules.get(_MANAGER), "_current_platform", None)
    return current is not None and not isinstance(current, AcceleratorPlatform)
