# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What workers need in their environment reaches them through Ray's runtime environment.

A shell export reaches only a Ray that the same shell starts. Ledger rows ``ppo-environment`` (everything in a job of
verl's PPO trainers) and ``worker-environment`` (workers, whoever called ``ray.init``).
"""

import json
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.facts import vendors
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform import our_platform
from verl_hw_core.platform.table import PLATFORM_ENVVAR, requested_platform

JOB_ROW = "ppo-environment"
WORKER_ROW = "worker-environment"
FORWARDED = ("VERL_USE_EXTERNAL_PLUGINS", "VERL_USE_EXTERNAL_MODULES", "USE_FLAGCX")
FORWARDED_PREFIX = "VERL_HW_"

logger = logging.getLogger("verl_hw_core")


def variables(spec: HardwareSpec, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that every worker of a job on this vendor's devices gets.

    They are the platform, so that no worker decides otherwise; the vendor's launch variables; and every switch of
    ours that is set in ``environ``, the environment of the process that starts the workers. A value that the user has
    set wins over a default. Visibility masks are never among them, since they belong to a node.
    """
    found = {name: environ.get(name, default) for name, default in spec.launch_env}
    found[PLATFORM_ENVVAR] = spec.key
    found.update({name: environ[name] for name in FORWARDED if name in environ})
    found.update({name: value for name, value in environ.items() if name.startswith(FORWARDED_PREFIX)})
    return found


@upstream.replaces(JOB_ROW, "verl.trainer.constants_ppo:get_ppo_ray_runtime_env")
def get_ppo_ray_runtime_env(own: Callable[..., dict[str, Any]], *args: Any, **kwargs: Any) -> dict[str, Any]:
    """verl's function of this name, with our variables."""
    runtime_env = own(*args, **kwargs)
    platform = our_platform()
    if platform is None:
        _say_how_to_choose()
        return runtime_env
    # Ray refuses a variable that `ray job submit --runtime-env` has set for the whole job already.
    given = _job_variables()
    ours = {name: value for name, value in variables(platform.spec).items() if name not in given}
    return {**runtime_env, "env_vars": {**runtime_env.get("env_vars", {}), **ours}}


@upstream.replaces(WORKER_ROW, "verl.single_controller.ray.base:RayClassWithInitArgs.__call__")
def create_worker(own: Callable[..., Any], factory: Any, *args: Any, **kwargs: Any) -> Any:
    """verl's ``RayClassWithInitArgs.__call__``, with our variables."""
    platform = our_platform()
    if platform is not None:
        runtime_env = dict(factory._options.get("runtime_env") or {})
        runtime_env["env_vars"] = {**variables(platform.spec), **runtime_env.get("env_vars", {})}
        factory.update_options({"runtime_env": runtime_env})
    return own(factory, *args, **kwargs)


def _job_variables() -> Mapping[str, str]:
    """Variables of the runtime environment that this process was submitted with."""
    from ray._private.runtime_env.constants import RAY_JOB_CONFIG_JSON_ENV_VAR

    config = json.loads(os.environ.get(RAY_JOB_CONFIG_JSON_ENV_VAR) or "{}")
    found: Mapping[str, str] = (config.get("runtime_env") or {}).get("env_vars") or {}
    return found


def _say_how_to_choose() -> None:
    """Warn on a machine without accelerator, the head of a cluster perhaps, that has wheels of ours."""
    import torch

    keys = [spec.key for spec in vendors.specs()]
    if keys and not requested_platform() and not torch.cuda.is_available():  # noqa: TID251 - is it NVIDIA's machine?
        logger.warning(
            "No accelerator was found on this machine. If the cluster's workers have one, set %s here (%s): it is "
            "handed to all of them",
            PLATFORM_ENVVAR,
            ", ".join(keys),
        )
