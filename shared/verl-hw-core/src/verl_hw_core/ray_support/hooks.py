# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Where verl's Ray code is changed: when verl imports it, and never for a platform that is not ours.

At that moment the platform may still be open, so the replacements ask for it when they are called.
"""

import sys
from types import ModuleType

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
            upstream.when_imported(name, hook)


def _change_worker(_module: ModuleType) -> None:
    from verl_hw_core.ray_support import holding, worker_device

    upstream.apply(worker_device.WORKER_ROW, "ray-worker", "ray-accelerator-manager", holding.IDS_ROW)


def _change_worker_groups(_module: ModuleType) -> None:
    if _is_anothers_run():
        return
    from verl_hw_core.ray_support import environment, placement

    upstream.apply(placement.POOLS_ROW, placement.FREE_ROW)
    upstream.apply(placement.CHECK_ROW, placement.FREE_ROW)
    upstream.apply(environment.WORKER_ROW)


def _change_trainers(_module: ModuleType) -> None:
    from verl_hw_core.ray_support import environment

    upstream.apply(environment.JOB_ROW)


def _is_anothers_run() -> bool:
    """Whether verl's platform is fixed already, and not ours."""
    from verl_hw_core.platform import AcceleratorPlatform

    current = getattr(sys.modules.get(_MANAGER), "_current_platform", None)
    return current is not None and not isinstance(current, AcceleratorPlatform)
