# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Attention that the machine has: no ``flash_attn`` means sdpa, and what the user chose is obeyed.

verl asks for flash_attention_2 by default, and for value models always, whatever the user set (ledger row
``value-model-attention``). ``flash_attn`` has no wheel for most accelerators.
"""

import importlib.util
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.training import ulysses

logger = logging.getLogger("verl_hw_core")

ROW = "value-model-attention"
"""Ledger row of the replacement."""

FLASH = "flash_attention_2"
FALLBACK = "sdpa"


@contextmanager
def usable_attention(requested: str | None, sequence_parallel: int = 1) -> Iterator[None]:
    """Load models inside this block with an attention implementation that works here.

    Args:
        requested: What the user set as ``attn_implementation``, or None. It is used as it is, for value models too.
        sequence_parallel: Ranks that share one pack; with more than one, sdpa exchanges heads for tokens.
    """
    _settings[:] = [(requested, sequence_parallel)]
    upstream.apply(ROW)
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
