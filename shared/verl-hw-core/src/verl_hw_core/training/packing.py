# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Padding removal without flash attention: sequences in one pack must not see each other.

transformers builds a block-diagonal mask from the position ids for sdpa and eager. Here is what that does not cover:
vision-language models whose attention verl replaces by a flash-only one, linear attention, which has no mask, and
sequence parallelism, which verl has in flash attention only (see :mod:`verl_hw_core.training.ulysses`).
"""

import importlib.util
from inspect import signature
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.errors import UnsupportedModelSettingError

ROW = "flash-only-attention"
"""Ledger row of the replacement."""

FLASH_ONLY_MODELS = frozenset({"qwen2_vl", "qwen2_5_vl", "glm4v", "kimi_vl"})
"""Model types whose attention verl replaces by a flash-only one for padding removal or sequence parallelism."""


def is_flash(implementation: str | None) -> bool:
    """Whether an attention implementation is flash attention, from the flash_attn package or a kernel hub."""
    return "flash" in (implementation or "")


def require_sequence_parallelism(model_config: Any, ranks: int) -> None:
    """Check, before any model is built, that its attention can be spread over ``ranks`` ranks.

    Raises:
        UnsupportedModelSettingError: The attention would be wrong or fail.
    """
    requested = model_config.override_config.get("attn_implementation")
    have_flash = importlib.util.find_spec("flash_attn") is not None
    if ranks == 1 or is_flash(requested) or (requested is None and have_flash):
        return
    if requested not in (None, "sdpa"):
        raise UnsupportedModelSettingError(
            f"ulysses_sequence_parallel_size={ranks} works with flash attention and sdpa; attn_implementation="
            f"{requested!r} would attend within each rank's slice only. Set "
            "+model.override_config.attn_implementation=sdpa, or ulysses_sequence_parallel_size=1"
        )
    model_type = model_config.hf_config.model_type
    if model_type in FLASH_ONLY_MODELS:
        raise UnsupportedModelSettingError(
            f"ulysses_sequence_parallel_size={ranks} needs flash_attn for {model_type}, and it is not installed: set "
            "ulysses_sequence_parallel_size=1"
        )


def keep_transformers_attention() -> None:
    """Let models that run without flash attention keep transformers' attention; a second call changes nothing."""
    from verl.workers.engine.fsdp import transformer_impl

    upstream.replace(ROW, transformer_impl, "apply_monkey_patch", apply_monkey_patch)


def apply_monkey_patch(model: Any, *args: Any, **kwargs: Any) -> None:
    """verl's function of this name, told of padding removal only where the model runs with flash attention."""
    from verl.workers.engine.fsdp import transformer_impl

    text = model.config.get_text_config() if hasattr(model, "config") else None
    if kwargs.get("ulysses_sp_size", 1) == 1 and not is_flash(getattr(text, "_attn_implementation", None)):
        kwargs["use_remove_padding"] = False
    upstream.original(ROW, transformer_impl, "apply_monkey_patch")(model, *args, **kwargs)


def require_separate_sequences(module: Any) -> None:
    """Check a model that is about to run with padding removal.

    Raises:
        UnsupportedModelSettingError: It has linear-attention layers and does not take the sequences' lengths: their
            state would run from one sequence of a pack into the next.
    """
    config = getattr(module, "config", None)
    if config is None or "linear_attention" not in (getattr(config.get_text_config(), "layer_types", None) or ()):
        return
    if "cu_seqlens" in signature(module.forward).parameters:
        return
    raise UnsupportedModelSettingError(
        f"{type(module).__name__} has linear-attention layers, whose state would run from one packed sequence into the "
        "next: set model.use_remove_padding=False"
    )
