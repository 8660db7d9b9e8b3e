# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's log-prob helpers for runs without padding, from torch operations only.

verl's own take ``pad_input`` from flash_attn: one on every device but npu, the other on cuda, and on any device that is
neither cuda nor npu that one ends in an ``UnboundLocalError`` (ledger row ``rmpad-log-probs``).
"""

from collections.abc import Callable
from typing import Any

import torch

from verl_hw_core import upstream

ROW = "rmpad-log-probs"
"""Ledger row of the replacements."""


def replace_helpers() -> None:
    """Put our helpers in the place of verl's; a second call changes nothing."""
    upstream.apply(ROW)


@upstream.replaces(ROW, "verl.utils.torch_functional:log_probs_from_logits_response_rmpad")
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
    batch_size, tokens = input_ids.shape
    indices = attention_mask.flatten().nonzero().flatten()
    packed = input_ids.flatten()[indices]
    return _responses(packed, logits_rmpad, indices, batch_size, tokens, response_length)


@upstream.replaces(ROW, "verl.utils.torch_functional:log_probs_from_logits_all_rmpad")
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
