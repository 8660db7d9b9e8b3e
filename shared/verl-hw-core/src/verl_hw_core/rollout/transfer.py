# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Weights on their way from trainer to server: pieces of tensors, in buckets of bounded size.

A piece is a run of a tensor's elements as raw bytes, so that a tensor larger than a bucket simply has several pieces
and bfloat16, which numpy does not know, needs no conversion.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Piece:
    """A run of the elements of one tensor.

    Attributes:
        name: The tensor's name.
        shape: Shape of the whole tensor.
        dtype: Its dtype, as ``"float32"``.
        start: First element of the run in the flattened tensor.
        data: The bytes, a one-dimensional numpy array of uint8; Ray passes it through shared memory.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    start: int
    data: Any

    def tensor(self) -> torch.Tensor:
        """The run as a one-dimensional host tensor."""
        if not self.data.size:
            return torch.empty(0, dtype=getattr(torch, self.dtype))
        # Ray's arrays are read-only, which torch warns of.
        return torch.from_numpy(self.data.copy()).view(getattr(torch, self.dtype))


async def buckets(weights: AsyncIterator[tuple[str, torch.Tensor]], limit: int) -> AsyncIterator[list[Piece]]:
    """Copy tensors to the host, at most ``limit`` bytes at a time.

    Args:
        weights: Names and whole tensors. The next one is asked for only when the one before was copied.
        limit: Bytes of a bucket; at least one element goes into each.

    Yields:
        Pieces that belong to nobody else: the trainer may change its tensors at once.
    """
    bucket: list[Piece] = []
    size = 0
    async for name, tensor in weights:
        for piece in _pieces(name, tensor, limit):
            if bucket and size + piece.data.nbytes > limit:
                yield bucket
                bucket, size = [], 0
            bucket.append(piece)
            size += piece.data.nbytes
    if bucket:
        yield bucket


def _pieces(name: str, tensor: torch.Tensor, limit: int) -> Iterable[Piece]:
    flat = tensor.detach().reshape(-1)
    step = max(1, limit // flat.element_size())
    for start in range(0, max(1, flat.numel()), step):
        run = flat[start : start + step].to("cpu", copy=True).view(torch.uint8).numpy()
        yield Piece(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), start, run)
