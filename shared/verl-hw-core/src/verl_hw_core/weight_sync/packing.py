# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Copying a tensor's bytes into a bucket, whatever its strides, without a second copy of the tensor."""

from collections.abc import Iterator

import torch

from verl_hw_core.weight_sync.layout import Piece


class UnsendableTensorError(Exception):
    """A tensor has no plain bytes to send."""


def check(tensor: torch.Tensor) -> None:
    """Refuse what cannot be sent as bytes.

    Raises:
        UnsendableTensorError: It is sparse, quantized, sharded, or has no data.
    """
    if tensor.layout is not torch.strided or tensor.is_quantized:
        kind = "a quantized tensor" if tensor.is_quantized else f"a {tensor.layout} tensor"
    elif tensor.device.type == "meta":
        kind = "a tensor without data (meta device)"
    elif hasattr(tensor, "full_tensor"):
        kind = "a shard (DTensor); the trainer's engine must gather it"
    else:
        return
    raise UnsendableTensorError(f"only dense, complete tensors can be sent, this is {kind}")


def fill(bucket: torch.Tensor, piece: Piece, tensor: torch.Tensor) -> None:
    """Copy a piece of ``tensor`` to its place.

    Args:
        bucket: The bucket, uint8 of shape ``[bucket_size]``.
        piece: Which bytes, and where they go.
        tensor: The whole tensor, on any device.
    """
    itemsize = tensor.dtype.itemsize
    target = bucket[piece.offset : piece.offset + piece.size]
    done = 0
    for part in flat_range(tensor.detach(), piece.start // itemsize, piece.stop // itemsize):
        size = part.numel() * itemsize
        _copy(target[done : done + size], part)
        done += size


def _copy(target: torch.Tensor, part: torch.Tensor) -> None:
    if part.is_contiguous() and part.numel() > 1:  # a single element counts as contiguous whatever its stride
        copy_bytes(target, part.reshape(-1).view(torch.uint8))
    elif part.dtype.itemsize == 1:  # fp8 and the like: a vendor may have no copy kernel for them
        target.view(part.shape).copy_(part.view(torch.uint8))
    else:
        target.view(part.dtype).view(part.shape).copy_(part)


def copy_bytes(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy bytes; other threads run meanwhile, which an assignment to a slice would not allow.

    In host memory it copies words of eight where they divide: torch copies single bytes a third slower there. Not on
    devices, of which some store int64 as int32.

    Args:
        target: uint8 of shape ``[n]``.
        source: uint8 of shape ``[n]``.
    """
    both = (target, source)
    if all(one.device.type == "cpu" and one.numel() % 8 == one.storage_offset() % 8 == 0 for one in both):
        target, source = target.view(torch.int64), source.view(torch.int64)
    target.copy_(source)


def flat_range(tensor: torch.Tensor, start: int, stop: int) -> Iterator[torch.Tensor]:
    """Yield views that hold elements ``start`` to ``stop`` of the flattened tensor, in order."""
    if start >= stop:
        return
    if tensor.dim() == 0 or (start == 0 and stop == tensor.numel()):
        yield tensor
    elif tensor.is_contiguous():
        yield tensor.view(-1)[start:stop]
    elif tensor.dim() == 1:
        yield tensor[start:stop]
    else:
        yield from _by_rows(tensor, start, stop)


def _by_rows(tensor: torch.Tensor, start: int, stop: int) -> Iterator[torch.Tensor]:
    row = tensor[0].numel()
    first, last = -(-start // row), stop // row  # the full rows
    if first > last:  # all within one row
        yield from flat_range(tensor[last], start - last * row, stop - last * row)
        return
    if start < first * row:
        yield from flat_range(tensor[first - 1], start - (first - 1) * row, row)
    if first < last:
        yield tensor[first:last]
    if last * row < stop:
        yield from flat_range(tensor[last], 0, stop - last * row)
