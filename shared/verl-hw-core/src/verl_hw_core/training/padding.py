# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's helpers for batches without padding, from torch operations, where verl has them from flash_attn only.

Those that take padding out of a batch and put it back (verl 0.9.0) are called by the driver as well as the workers, so
they are replaced when our engines are imported, in any process whose platform is ours. A verl that asks its platform
(``attention_utils_module``) is given this module, and nothing is replaced.

The log-prob helpers take ``pad_input`` from flash_attn: one on every device but npu, the other on cuda, and on any
device that is neither cuda nor npu that one ends in an ``UnboundLocalError`` (ledger row ``rmpad-log-probs``).

Whether verl needs ours is tried out: its own are called first.
"""

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from verl_hw_core import upstream

ROW, LOG_PROBS_ROW = "padding-helpers", "rmpad-log-probs"
"""Ledger rows of the helpers and of the log-prob helpers."""


def replace_helpers() -> None:
    """Give verl helpers from torch operations where it has none for this machine; a second call changes nothing."""
    from verl.utils import attention_utils

    if importlib.util.find_spec("flash_attn") is not None:
        return
    try:
        attention_utils.index_first_axis(torch.zeros(1, 1), torch.zeros(1, dtype=torch.int64))
    except ImportError:
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


def replace_log_probs() -> None:
    """Put our log-prob helpers in the place of verl's where these fail; a second call changes nothing."""
    from verl.utils import torch_functional

    tokens, logits, places = torch.ones(1, 2, dtype=torch.int64), torch.zeros(2, 3), torch.arange(2)
    try:
        torch_functional.log_probs_from_logits_response_rmpad(tokens, tokens, logits, 1)
        torch_functional.log_probs_from_logits_all_rmpad(tokens, logits, places, 1, 2, 1)
    except Exception:  # noqa: BLE001 - no flash_attn, one that takes tensors of its device only, or an unset variable
        upstream.apply(LOG_PROBS_ROW)


@upstream.replaces(LOG_PROBS_ROW, "verl.utils.torch_functional:log_probs_from_logits_response_rmpad")
def log_probs_from_logits_response_rmpad(
    _own: Callable[..., torch.Tensor],
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    logits_rmpad: torch.Tensor,
    response_length: int,
) -> torch.Tensor:
    """Log-probs of the responses from the logits of a pack and the padded tokens.

    Args:
        input_ids: (batch, tokens), padded.
        attention_mask: (batch, tokens), nonzero where the token is real.
        logits_rmpad: (real tokens, vocabulary).
        response_length: Length of the padded responses.

    Returns:
        (batch, response length), zero where the token before is padding.
    """
    indices = attention_mask.flatten().nonzero().flatten()
    return _responses(input_ids.flatten()[indices], logits_rmpad, indices, *input_ids.shape, response_length)


@upstream.replaces(LOG_PROBS_ROW, "verl.utils.torch_functional:log_probs_from_logits_all_rmpad")
def log_probs_from_logits_all_rmpad(
    _own: Callable[..., torch.Tensor],
    input_ids_rmpad: torch.Tensor,
    logits_rmpad: torch.Tensor,
    indices: torch.Tensor,
    batch_size: int,
    seqlen: int,
    response_length: int,
) -> torch.Tensor:
    """Log-probs of the responses from the logits and the tokens of a pack.

    Args:
        input_ids_rmpad: (1, real tokens).
        logits_rmpad: (real tokens, vocabulary).
        indices: (real tokens,), each token's place in the flattened padded batch.
        batch_size: Sequences in the batch.
        seqlen: Length of the padded sequences.
        response_length: Length of the padded responses.

    Returns:
        (batch, response length), zero where the token before is padding.
    """
    return _responses(input_ids_rmpad.reshape(-1), logits_rmpad, indices, batch_size, seqlen, response_length)


def _responses(packed: torch.Tensor, logits: torch.Tensor, indices: torch.Tensor, *sizes: int) -> Any:
    from verl.utils import torch_functional  # not its function alone: a vendor may have replaced it

    batch_size, tokens, response_length = sizes
    # The last token of a sequence gets its neighbour's first as label; that place is never part of a response.
    log_probs = torch_functional.logprobs_from_logits(logits=logits, labels=packed.roll(-1))
    padded = log_probs.new_zeros(batch_size * tokens).index_copy(0, indices, log_probs)
    return padded.view(batch_size, tokens)[:, -response_length - 1 : -1]
