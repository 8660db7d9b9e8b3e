# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Build the replica's model from verl's configuration, as the trainer builds its own."""

from typing import Any

import torch

from verl_hw_core.errors import UnsupportedModelSettingError
from verl_hw_core.rollout.generation import Generator
from verl_hw_core.rollout.model import BringupModel
from verl_hw_core.rollout.settings import REAL_LOAD_FORMATS
from verl_hw_core.training import attention


def build_model(rollout: Any, model_config: Any, device: torch.device) -> BringupModel:
    """Build the model, with weights only if ``rollout.load_format`` asks for them.

    Args:
        rollout: verl's ``RolloutConfig``.
        model_config: verl's ``HFModelConfig``.
        device: Where the model is to live.

    Raises:
        UnsupportedModelSettingError: transformers has no causal language model for this configuration.
    """
    from verl.plugin.platform import get_platform
    from verl.utils.torch_dtypes import PrecisionType

    loaded = rollout.load_format in REAL_LOAD_FORMATS
    tokenizer = model_config.tokenizer

    def generator(module: Any) -> Generator:
        return Generator(
            module,
            tokenizer,
            _end_tokens(model_config),
            tokenizer.pad_token_id or 0,
            raw_log_probs=rollout.logprobs_mode == "raw_logprobs",
        )

    return BringupModel(
        _module(model_config, loaded),
        PrecisionType.to_dtype(rollout.dtype),
        device,
        generator,
        get_platform().empty_cache,
        loaded=loaded,
    )


def _module(model_config: Any, loaded: bool) -> Any:
    """With the trainer's patches and attention; without weights, the parameters are on the meta device."""
    from accelerate import init_empty_weights
    from transformers import AutoModelForCausalLM
    from verl.plugin.platform import get_platform

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
    for ids in (
        getattr(model_config.generation_config, "eos_token_id", None),
        model_config.tokenizer.eos_token_id,
    ):
        if ids is not None:
            found.update([ids] if isinstance(ids, int) else ids)
    return frozenset(found)
