# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's helpers that take padding out of a batch and put it back, where verl has them from flash_attn only (0.9.0).

The driver calls them as well as the workers, so they are replaced when our engines are imported, in any process whose
platform is ours.
"""

import importlib
import importlib.util
from typing import Any

import torch
from torch.nn import functional

from verl_hw_core import upstream

ROW = "padding-helpers"
"""Ledger row of the replacement."""


def replace_helpers() -> None:
    """Give verl helpers from torch operations where it has none for this machine; a second call changes nothing."""
    from verl.utils import attention_utils

    if hasattr(attention_utils, "_fallback_pad_input") or importlib.util.find_spec("flash_attn") is not None:
        return
    upstream.apply(ROW)


@upstream.replaces(ROW, "verl.utils.attention_utils:_get_attention_functions")
def helpers(_own: Any) -> tuple[Any, Any, Any, Any]:
    """Return what verl's function of this name returns: index_first_axis, pad_input, rearrange, unpad_input."""
    return index_first_axis, pad_input, rearrange, unpad_input


def rearrange(*args: Any, **kwargs: Any) -> Any:
    """``einops.rearrange``, imported when called: the other helpers need no einops."""
    return importlib.import_module("einops").rearrange(*args, **kwargs)


def index_first_axis(tensor: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Return the rows ``indices`` of ``tensor``."""
    return tensor.index_select(0, indices)


def pad_input(hidden_states: torch.Tensor, indices: torch.Tensor, batch: int, seqlen: int) -> torch.Tensor:
    """Put a pack's tokens back to their places in a padded batch.

    Args:
        hidden_states: (real tokens, ...).
        indices: (real tokens,), each token's place in the flattened batch.
        batch: Sequences in the batch.
        seqlen: Length of the padded sequences.

    Returns:
        (batch, seqlen, ...), zero where there is padding.
    """
    rest = hidden_states.shape[1:]
    padded = hidden_states.new_zeros(batch * seqlen, *rest).index_copy(0, indices, hidden_states)
    return padded.view(batch, seqlen, *rest)


def unpad_input(
    hidden_states: torch.Tensor, attention_mask: torch.Tensor, unused_mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int, torch.Tensor]:
    """Take the real tokens of a padded batch.

    Args:
        hidden_states: (batch, tokens, ...).
        attention_mask: (batch, tokens), 1 where the token is real, 0 elsewhere.
        unused_mask: (batch, tokens), 1 for tokens that are allocated and not used, or None.

    Returns:
        The tokens, (taken tokens, ...); their places in the flattened batch; the cumulative lengths, (batch + 1,) in
        int32; the greatest length; the lengths without unused tokens, (batch,) in int32.
    """
    taken = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = taken.sum(dim=-1, dtype=torch.int32)
    indices = taken.flatten().nonzero().flatten()
    return (
        index_first_axis(hidden_states.flatten(0, 1), indices),
        indices,
        functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0)),
        int(lengths.max()),
        attention_mask.sum(dim=-1, dtype=torch.int32),
    )
