# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Sequence parallelism (Ulysses) for sdpa.

verl exchanges heads for tokens inside flash attention only. With any other implementation each rank would attend to
its own slice of the pack and the numbers would be wrong without a word. So models that would run with sdpa run with an
implementation of our own, registered through transformers' public interface.
"""

from typing import Any

import torch

from verl_hw_core.errors import UnsupportedModelSettingError

SDPA_WITH_EXCHANGE = "verl_hw_ulysses_sdpa"
"""Name of the implementation in transformers."""


def register() -> str:
    """Make the implementation known to transformers and return its name."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(SDPA_WITH_EXCHANGE, sdpa_with_exchange)
    AttentionMaskInterface.register(SDPA_WITH_EXCHANGE, sdpa_mask)
    return SDPA_WITH_EXCHANGE


def sdpa_with_exchange(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    position_ids: torch.Tensor | None = None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention over the whole pack, of which this rank holds a slice of tokens and, meanwhile, of heads.

    Args:
        module: The attention layer.
        query: (1, heads, tokens / ranks, head size).
        key: The same with the layer's key-value heads.
        value: As ``key``.
        attention_mask: The mask within the slice; used only outside sequence parallelism.
        position_ids: (1, tokens / ranks); None in layers that are not sliced, as in a vision tower.
        dropout: Probability.
        scaling: Factor of the scores, or None for the usual one.
        sliding_window: Tokens that a token sees, itself included, or None for all.
        kwargs: Passed on outside sequence parallelism.

    Returns:
        The output, (1, tokens / ranks, heads, head size), and None for the weights.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from verl.utils.ulysses import (
        gather_heads_scatter_seq,
        gather_seq_scatter_heads,
        get_ulysses_sequence_parallel_world_size,
    )

    ranks = get_ulysses_sequence_parallel_world_size()
    if ranks > 1 and position_ids is None and getattr(module, "is_causal", True):
        raise UnsupportedModelSettingError(
            f"{type(module).__name__} does not tell its attention the positions of the tokens, so sequence parallelism "
            "over sdpa would let each rank attend to its own slice only: set ulysses_sequence_parallel_size=1"
        )
    if ranks == 1 or position_ids is None:
        own: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return own
    heads = query.shape[1]
    if key.shape[1] % ranks:  # fewer key-value heads than ranks: each rank needs a copy of its own
        key, value = (part.repeat_interleave(heads // part.shape[1], dim=1) for part in (key, value))
    query, key, value = (gather_seq_scatter_heads(part, seq_dim=2, head_dim=1) for part in (query, key, value))
    if key.shape[1] != query.shape[1]:
        key, value = (part.repeat_interleave(query.shape[1] // part.shape[1], dim=1) for part in (key, value))
    mask = pack_mask(_whole(position_ids, ranks), sliding_window)
    output = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, scale=scaling
    )
    return gather_heads_scatter_seq(output, head_dim=1, seq_dim=2).transpose(1, 2).contiguous(), None


def pack_mask(position_ids: torch.Tensor, sliding_window: int | None) -> torch.Tensor:
    """Return who sees whom in a pack: causal, within one sequence, within the window.

    Args:
        position_ids: (1, tokens), rising by one within a sequence.
        sliding_window: Tokens that a token sees, itself included, or None for all.

    Returns:
        Booleans of (1, 1, tokens, tokens), True where the row's token sees the column's.
    """
    starts = torch.ones_like(position_ids, dtype=torch.bool)
    starts[:, 1:] = position_ids[:, 1:] - position_ids[:, :-1] != 1
    sequence = starts.cumsum(-1)[0]
    token = torch.arange(sequence.shape[0], device=sequence.device)
    distance = token[:, None] - token[None, :]
    mask = (sequence[:, None] == sequence[None, :]) & (distance >= 0)
    if sliding_window is not None:
        mask &= distance < sliding_window
    return mask[None, None]


def _whole(position_ids: torch.Tensor, ranks: int) -> torch.Tensor:
    """Position ids of the whole pack from every rank's slice."""
    from verl.utils.ulysses import get_ulysses_sequence_parallel_group

    position_ids = position_ids.contiguous()
    slices = [torch.empty_like(position_ids) for _ in range(ranks)]
    torch.distributed.all_gather(slices, position_ids, group=get_ulysses_sequence_parallel_group())
    return torch.cat(slices, dim=-1)
