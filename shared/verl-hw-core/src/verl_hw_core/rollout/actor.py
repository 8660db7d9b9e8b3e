# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The server as a Ray actor: reads verl's configuration, takes the worker's device, builds the model there."""

from functools import partial
from typing import Any

import torch
from verl.plugin.platform import get_platform
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import HFModelConfig
from verl.workers.rollout.replica import RolloutMode, TokenOutput
from verl.workers.rollout.utils import get_max_position_embeddings

from verl_hw_core.errors import RolloutConfigError, VendorRuntimeError
from verl_hw_core.rollout.building import build_model
from verl_hw_core.rollout.model import BringupModel
from verl_hw_core.rollout.server import BringupServer
from verl_hw_core.rollout.settings import Settings, check_config, read_settings


class BringupActor(BringupServer):
    """What :class:`~verl_hw_core.rollout.replica.BringupReplica` starts.

    Args:
        rollout: verl's rollout configuration.
        model: verl's model configuration.
        mode: How the replica shares its device.
        ordinal: Device ordinal in this process.
        counter: Actor handle of the run's :class:`~verl_hw_core.rollout.seeds.PromptCounter`.
    """

    def __init__(self, rollout: Any, model: Any, mode: RolloutMode, ordinal: int, counter: Any) -> None:
        config = omega_conf_to_dataclass(rollout)
        model_config = omega_conf_to_dataclass(model, dataclass_type=HFModelConfig)
        check_config(config, model_config)
        settings = read_settings(config)
        _set_length(config, model_config)
        platform = get_platform()
        super().__init__(
            build=partial(_build, config, model_config, settings, ordinal),
            settings=settings,
            rollout=config,
            completion=TokenOutput,
            count=counter.next.remote,
            sleep_level=_sleep_level(mode, config, settings),
            profiler=(platform.profiler_start, platform.profiler_stop),
        )


def _build(config: Any, model_config: Any, settings: Settings, ordinal: int) -> BringupModel:
    if config.full_determinism:
        from verl.workers.engine.utils import enable_full_determinism

        enable_full_determinism(seed=config.seed)
    return build_model(config, model_config, _device(settings, ordinal))


def _device(settings: Settings, ordinal: int) -> torch.device:
    """The device, selected for the calling thread.

    Raises:
        VendorRuntimeError: The accelerator is not there; the host is used only when it was asked for.
    """
    platform = get_platform()
    if settings.device == "cpu" or platform.device_name == "cpu":
        return torch.device("cpu")
    if not platform.is_available():
        raise VendorRuntimeError(
            f"the rollout's process sees no {platform.device_name} device, where the training worker uses number "
            f"{ordinal}. To generate on the host instead, set "
            "+actor_rollout_ref.rollout.engine_kwargs.hf_bringup.device=cpu"
        )
    platform.set_device(ordinal)
    return torch.device(platform.device_name, ordinal)


def _set_length(config: Any, model_config: Any) -> None:
    longest = get_max_position_embeddings(model_config.hf_config)
    if config.max_model_len is None:
        config.max_model_len = longest
    elif config.max_model_len > longest:
        raise RolloutConfigError(
            f"rollout.max_model_len={config.max_model_len} is longer than the model's max_position_embeddings={longest}"
        )


def _sleep_level(mode: RolloutMode, config: Any, settings: Settings) -> int:
    """Hybrid: as set. Otherwise the device is the replica's own, and nobody else waits for its memory."""
    return settings.sleep_level if mode == RolloutMode.HYBRID and config.free_cache_engine else 0
