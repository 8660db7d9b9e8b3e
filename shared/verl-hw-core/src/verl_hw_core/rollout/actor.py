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

from verl_hw_core.errors import RolloutConfigError, UnsupportedModelSettingError, VendorRuntimeError
from verl_hw_core.rollout.generation import Generator
from verl_hw_core.rollout.model import BringupModel
from verl_hw_core.rollout.sampling import counting
from verl_hw_core.rollout.server import BringupServer
from verl_hw_core.rollout.settings import REAL_LOAD_FORMATS, Settings, check_config, read_settings
from verl_hw_core.training import attention, experts


class BringupActor(BringupServer):
    """What :class:`~verl_hw_core.rollout.replica.BringupReplica` starts.

    Args:
        rollout: verl's rollout configuration.
        model: verl's model configuration.
        mode: How the replica shares its device.
        ordinal: Device ordinal in this process.
        counter: Actor handle of the run's :class:`~verl_hw_core.rollout.sampling.PromptCounter`.
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
            count=counting(counter),
            # In other modes the device is the replica's own, and nobody else waits for its memory.
            sleep_level=settings.sleep_level if mode == RolloutMode.HYBRID and config.free_cache_engine else 0,
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


def build_model(rollout: Any, model_config: Any, device: torch.device) -> BringupModel:
    """Build the model as the trainer builds its own, with weights only if ``rollout.load_format`` asks for them.

    Args:
        rollout: verl's ``RolloutConfig``.
        model_config: verl's ``HFModelConfig``.
        device: Where the model is to live.

    Raises:
        UnsupportedModelSettingError: transformers has no causal language model for this configuration.
    """
    from verl.utils.torch_dtypes import PrecisionType

    loaded = rollout.load_format in REAL_LOAD_FORMATS
    dtype = PrecisionType.to_dtype(rollout.dtype)
    built = _module(model_config, loaded)
    experts.choose(built, device, dtype)
    tokenizer = model_config.tokenizer

    def generator(module: Any) -> Generator:
        raw = rollout.logprobs_mode == "raw_logprobs"
        return Generator(module, tokenizer, _end_tokens(model_config), tokenizer.pad_token_id or 0, raw_log_probs=raw)

    return BringupModel(built, dtype, device, generator, get_platform().empty_cache, loaded=loaded)


def _module(model_config: Any, loaded: bool) -> Any:
    """With the trainer's patches and attention; without weights, the parameters are on the meta device."""
    from accelerate import init_empty_weights
    from transformers import AutoModelForCausalLM

    config = model_config.hf_config
    own_code = "AutoModelForCausalLM" in (getattr(config, "auto_map", None) or {})
    if type(config) not in AutoModelForCausalLM._model_mapping and not own_code:
        raise UnsupportedModelSettingError(
            f"the bring-up rollout serves language models only: transformers has no causal language model for "
            f"{config.model_type!r}"
        )
    if not model_config.use_liger:  # as our engines: Liger replaces the same parts
        get_platform().apply_model_patches(config.model_type)
    requested = model_config.override_config.get("attn_implementation")
    options = {
        "attn_implementation": attention.choose(requested, None, config),
        "trust_remote_code": model_config.trust_remote_code,
    }
    if loaded:
        return AutoModelForCausalLM.from_pretrained(model_config.local_path, config=config, **options)
    with init_empty_weights(include_buffers=False):
        module = AutoModelForCausalLM.from_config(config, **options)
    module.tie_weights()  # building under this context has untied them
    return module


def _end_tokens(model_config: Any) -> frozenset[int]:
    """End tokens of the tokenizer and of the generation configuration, which may list several."""
    found: set[int] = set()
    for ids in (getattr(model_config.generation_config, "eos_token_id", None), model_config.tokenizer.eos_token_id):
        if ids is not None:
            found.update([ids] if isinstance(ids, int) else ids)
    return frozenset(found)
