# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Attention that the machine has: no ``flash_attn`` means sdpa, and what the user chose is obeyed.

verl asks for flash_attention_2 by default, and for value models always, whatever the user set (ledger row
``value-model-attention``). ``flash_attn`` has no wheel for most accelerators.

With padding removal, sequences in one pack must not see each other. transformers builds a block-diagonal mask from the
position ids for sdpa and eager. Here is what that does not cover: vision-language models whose attention verl replaces
by a flash-only one, linear attention, which has no mask, and sequence parallelism, which verl has in flash attention
only (see :mod:`verl_hw_core.training.ulysses`).
"""

import importlib.util
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.errors import UnsupportedModelSettingError
from verl_hw_core.training import ulysses

logger = logging.getLogger("verl_hw_core")

ROW, PACKING_ROW = "value-model-attention", "flash-only-attention"
"""Ledger rows of the attention that models are loaded with, and that packs run with."""

FLASH, FALLBACK = "flash_attention_2", "sdpa"


@contextmanager
def usable_attention(requested: str | None, sequence_parallel: int = 1) -> Iterator[None]:
    """Load models inside this block with an attention implementation that works here.

    Args:
        requested: What the user set as ``attn_implementation``, or None. It is used as it is, for value models too.
        sequence_parallel: Ranks that share one pack; with more than one, sdpa exchanges heads for tokens.

    Raises:
        UpstreamPatchError: transformers' loader cannot be replaced.
    """
    _settings[:] = [(requested, sequence_parallel)]
    if not upstream.apply(ROW):
        upstream.require_applied()
    try:
        yield
    finally:
        upstream.restore(ROW)


_settings: list[tuple[str | None, int]] = []


# Every auto class ends there.
@upstream.replaces(ROW, "transformers.modeling_utils:PreTrainedModel.from_pretrained")
def from_pretrained(own: Callable[..., Any], cls: Any, *args: Any, **kwargs: Any) -> Any:
    """transformers' class method, with an attention implementation that works here."""
    requested, sequence_parallel = _settings[0]
    chosen = choose(requested, kwargs.get("attn_implementation"), kwargs.get("config"))
    if sequence_parallel > 1 and chosen == FALLBACK:
        chosen = ulysses.register()
    kwargs["attn_implementation"] = chosen
    return own(cls, *args, **kwargs)


def choose(requested: str | None, asked: str | None, config: Any) -> str | None:
    """Return the implementation to load a model with.

    Args:
        requested: The user's explicit choice, or None.
        asked: What verl passes to ``from_pretrained``, or None.
        config: The model's configuration, whose own setting counts when nothing is passed.
    """
    if requested is not None:
        return requested
    wanted = asked or getattr(config, "_attn_implementation", None)
    if wanted == FLASH and importlib.util.find_spec("flash_attn") is None:
        logger.warning(
            "flash_attn is not installed: attention runs with %s. To choose, set "
            "+model.override_config.attn_implementation=sdpa|eager",
            FALLBACK,
        )
        return FALLBACK
    return wanted


FLASH_ONLY_MODELS = frozenset({"qwen2_vl", "qwen2_5_vl", "glm4v", "kimi_vl"})
"""Model types whose attention verl replaces by a flash-only one for padding removal or sequence parallelism."""

_REMEDY = "set model.use_remove_padding=False"


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


@upstream.replaces(PACKING_ROW, "verl.workers.engine.fsdp.transformer_impl:apply_monkey_patch")
def apply_monkey_patch(own: Callable[..., None], model: Any, *args: Any, **kwargs: Any) -> None:
    """verl's function of this name, told of padding removal only where the model runs with flash attention."""
    text = model.config.get_text_config() if hasattr(model, "config") else None
    if kwargs.get("ulysses_sp_size", 1) == 1 and not is_flash(getattr(text, "_attn_implementation", None)):
        kwargs["use_remove_padding"] = False
    own(model, *args, **kwargs)


def keep_transformers_attention() -> None:
    """Let models that run without flash attention keep transformers' attention; a second call changes nothing."""
    upstream.apply(PACKING_ROW)


def require_separate_sequences(module: Any) -> None:
    """Check a model, as verl loaded it, that is to run with padding removal; warn where its own code decides.

    Raises:
        UnsupportedModelSettingError: Sequences of one pack would see each other: transformers builds no mask for its
            attention implementation, or it has linear-attention layers and does not take the sequences' lengths.
    """
    module = getattr(module, "pretrained_model", module)  # trl's value head is a wrapper
    config = getattr(module, "config", None)
    if config is None:
        return
    text = config.get_text_config()
    name = type(module).__name__
    if not is_flash(text._attn_implementation):
        _require_mask(name, text._attn_implementation)
        if not type(module).__module__.startswith("transformers."):
            logger.warning(
                "%s brings its own modelling code: whether it keeps packed sequences apart without flash attention is "
                "not known. Compare with model.use_remove_padding=False before you rely on it",
                name,
            )
    linear = "linear_attention" in (getattr(text, "layer_types", None) or ())
    if linear and "cu_seqlens" not in signature(module.forward).parameters:
        raise UnsupportedModelSettingError(
            f"{name} has linear-attention layers, whose state would run from one packed sequence into the next: "
            f"{_REMEDY}"
        )


def _require_mask(name: str, implementation: str | None) -> None:
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    if implementation not in ALL_MASK_ATTENTION_FUNCTIONS:
        raise UnsupportedModelSettingError(
            f"{name} runs with attn_implementation={implementation!r}, for which transformers builds no mask, so that "
            f"packed sequences would see each other: {_REMEDY}, or use sdpa or eager"
        )
