# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Causal attention for Megatron from torch's scaled dot product, for padded and packed batches, also context parallel.

Megatron's own attention without TransformerEngine refuses packed batches and context parallelism, and reads a padding
mask of another shape and sense than verl gives. A causal mask makes padding on the right irrelevant, which is where
verl pads, so no padding mask is read here.
"""

import math
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.transformer.module import MegatronModule
from torch.nn import functional

from verl_hw_core.errors import UnsupportedModelSettingError


class CausalAttention(MegatronModule):
    """Megatron's ``core_attention``; arguments and parameter-free state are those of TEDotProductAttention."""

    def __init__(
        self,
        config: Any,
        layer_number: int,
        attn_mask_type: Any,
        attention_type: str,
        attention_dropout: float | None = None,
        softmax_scale: float | None = None,
        k_channels: int | None = None,
        pg_collection: Any = None,
        **_: Any,
    ) -> None:
        super().__init__(config=config)
        _require_plain_attention(config, attention_type)
        self._dropout = config.attention_dropout if attention_dropout is None else attention_dropout
        scale = 1.0 / math.sqrt(k_channels or config.kv_channels) if softmax_scale is None else softmax_scale
        self._scale = scale / max(1, layer_number) if config.apply_query_key_layer_scaling else scale
        self._group = parallel_state.get_context_parallel_group() if pg_collection is None else pg_collection.cp
        self._mask_name = attn_mask_type.name

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        attn_mask_type: Any = None,
        attention_bias: torch.Tensor | None = None,
        packed_seq_params: Any = None,
        **_: Any,
    ) -> torch.Tensor:
        """Attend within each sequence.

        Args:
            query: (tokens, batch, heads, channels), or (tokens, heads, channels) for a packed batch. A rank's part of
                the sequences under context parallelism: chunks ``r`` and ``2 * size - 1 - r`` of ``2 * size``.
            key: Likewise, with the key's own number of heads.
            value: Likewise.
            attention_mask: Not read; see the module.
            attn_mask_type: Megatron's AttnMaskType of this call, else the layer's.
            attention_bias: Must be None.
            packed_seq_params: Cumulative lengths of the packed sequences, over all context-parallel ranks.

        Returns:
            (tokens, batch, heads * channels), or (tokens, heads * channels) for a packed batch.

        Raises:
            UnsupportedModelSettingError: The mask is not causal, or there is a bias.
        """
        name = self._mask_name if attn_mask_type is None else attn_mask_type.name
        if "causal" not in name or attention_bias is not None:
            raise UnsupportedModelSettingError(
                f"Megatron without TransformerEngine has causal attention without a bias; the model wants mask {name!r}"
                f"{' and a bias' if attention_bias is not None else ''}. Use strategy fsdp2"
            )
        if packed_seq_params is None:
            return self._attend(query, key, value).flatten(2)
        lengths = _packed_lengths(packed_seq_params, self._group.size())
        parts = zip(*(tensor.unsqueeze(1).split(lengths) for tensor in (query, key, value)), strict=True)
        return torch.cat([self._attend(*part) for part in parts]).flatten(2).squeeze(1)

    def _attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Causal attention of whole sequences (of this rank's part); (tokens, batch, heads, channels)."""
        if self._group.size() == 1:
            return self._scaled_dot_product(query, key, value, None)
        keys, values = (_whole_sequence(tensor, self._group) for tensor in (key, value))
        size, rank = self._group.size(), self._group.rank()
        length = query.size(0) // 2
        outputs = []
        for chunk, part in zip((rank, 2 * size - 1 - rank), query.split(length), strict=True):
            end = (chunk + 1) * length
            mask = torch.ones(length, end, dtype=torch.bool, device=query.device).tril(end - length)
            outputs.append(self._scaled_dot_product(part, keys[:end], values[:end], mask))
        return torch.cat(outputs)

    def _scaled_dot_product(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None
    ) -> torch.Tensor:
        """Attention with a boolean mask, or causal attention of equally long query and key if there is none."""
        output = functional.scaled_dot_product_attention(
            query.permute(1, 2, 0, 3),
            key.permute(1, 2, 0, 3),
            value.permute(1, 2, 0, 3),
            attn_mask=mask,
            is_causal=mask is None,
            scale=self._scale,
            dropout_p=self._dropout if self.training else 0.0,
            enable_gqa=query.size(2) != key.size(2),
        )
        return output.permute(2, 0, 1, 3)


def _require_plain_attention(config: Any, attention_type: str) -> None:
    unsupported = [
        text
        for found, text in (
            (attention_type != "self", f"attention_type={attention_type}"),
            (config.softmax_type != "vanilla", f"softmax_type={config.softmax_type}"),
            (config.window_size is not None, f"window_size={config.window_size}"),
        )
        if found
    ]
    if unsupported:
        raise UnsupportedModelSettingError(
            f"Megatron without TransformerEngine has no attention with {', '.join(unsupported)}: use strategy fsdp2"
        )


def _packed_lengths(packed_seq_params: Any, ranks: int) -> list[int]:
    """Tokens that this rank has of each sequence, padding between sequences included."""
    padded = packed_seq_params.cu_seqlens_q_padded
    bounds = packed_seq_params.cu_seqlens_q if padded is None else padded
    return [int(length) // ranks for length in bounds.diff().tolist()]


class _GatherTokens(torch.autograd.Function):
    """All ranks' tensors, stacked; backward sums the gradients and takes this rank's."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        gathered = tensor.new_empty(group.size() * tensor.size(0), *tensor.shape[1:])
        torch.distributed.all_gather_into_tensor(gathered, tensor.contiguous(), group=group)
        return gathered.view(group.size(), *tensor.shape)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        summed = gradient.contiguous()
        torch.distributed.all_reduce(summed, group=ctx.group)
        return summed[ctx.group.rank()], None


def _whole_sequence(tensor: torch.Tensor, group: Any) -> torch.Tensor:
    """The whole sequence in its order, of which rank ``r`` has chunks ``r`` and ``2 * size - 1 - r``."""
    gathered = _GatherTokens.apply(tensor, group)
    first, second = gathered.chunk(2, dim=1)
    return torch.cat((first, second.flip(0))).flatten(0, 1)
