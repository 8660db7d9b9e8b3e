# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which bytes of which tensor lie where in a bucket, how that is said on the wire, and how they are copied there."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, TypeGuard

import torch

from verl_hw_core.weight_sync.topology import ALIGNMENT

_LONGEST_NAME = 4096
_MOST_DIMENSIONS = 64
_DTYPES = {str(value).removeprefix("torch."): value for value in vars(torch).values() if isinstance(value, torch.dtype)}


@dataclass(frozen=True)
class Piece:
    """A tensor, or a range of a tensor that is larger than a bucket, in one bucket.

    Attributes:
        name: Name of the tensor.
        dtype: Its dtype, as ``"bfloat16"``.
        shape: Shape of the whole tensor.
        start: First byte of the range, counted in the tensor.
        size: Bytes of the range.
        offset: Where it begins in the bucket.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    size: int
    offset: int

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype itself."""
        return _DTYPES[self.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return int(prod(self.shape) * self.torch_dtype.itemsize)

    @property
    def is_whole(self) -> bool:
        """Whether this is the whole tensor."""
        return self.size == self.nbytes

    @property
    def stop(self) -> int:
        """Byte after the range, counted in the tensor."""
        return self.start + self.size

    def follows(self, first: "Piece", done: int) -> bool:
        """Whether this is the range of ``first``'s tensor that begins at byte ``done``."""
        return (self.name, self.dtype, self.shape, self.start) == (first.name, first.dtype, first.shape, done)


class MalformedBucketError(Exception):
    """What a peer said of a bucket cannot be right."""

    def __init__(self, reason: str, tensor: str | None = None) -> None:
        super().__init__(reason)
        self.tensor = tensor


@dataclass
class Bucket:
    """What one bucket holds.

    Attributes:
        number: Counted from 0 in an update.
        pieces: In the order of the bytes.
        used: Bytes in use.
        last: Whether the update ends with it.
    """

    number: int
    pieces: list[Piece]
    used: int = 0
    last: bool = False

    @property
    def tensors(self) -> str | None:
        """Name of its tensor, or of the first and last one."""
        if not self.pieces:
            return None
        first, last = self.pieces[0].name, self.pieces[-1].name
        return first if first == last else f"{first} ... {last}"

    def as_message(self) -> dict[str, Any]:
        """Return the JSON object that says it."""
        pieces = [[one.name, one.dtype, one.shape, one.start, one.size, one.offset] for one in self.pieces]
        return {"bucket": self.number, "used": self.used, "last": self.last, "pieces": pieces}

    @classmethod
    def from_message(cls, message: dict[str, Any], number: int, bucket_size: int) -> "Bucket":
        """Read and check what :meth:`as_message` wrote of bucket ``number``, which is due.

        Raises:
            MalformedBucketError: It is another bucket, or what it says cannot be right.
        """
        if message.get("bucket") != number or type(message.get("last")) is not bool:
            raise MalformedBucketError(
                f"bucket {number} was due, the sender announced {str(message.get('bucket'))[:40]}"
            )
        used, pieces = message.get("used"), message.get("pieces")
        if not _is_count(used) or used > bucket_size or not isinstance(pieces, list):
            raise MalformedBucketError(f"it uses {str(used)[:40]} bytes of {bucket_size}")
        bucket, end = cls(number, [], used, message["last"]), 0
        for fields in pieces:
            piece = _read_piece(fields)
            if piece.offset % ALIGNMENT or piece.offset < end or piece.offset + piece.size > used:
                raise MalformedBucketError(
                    f"{piece.size} bytes at {piece.offset} do not fit after {end} of {used}", piece.name
                )
            end = piece.offset + piece.size
            bucket.pieces.append(piece)
        return bucket


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _read_piece(fields: Any) -> Piece:
    if not isinstance(fields, list) or len(fields) != 6:
        raise MalformedBucketError("a piece needs six fields")
    name, dtype, shape, start, size, offset = fields
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise MalformedBucketError("a tensor's name is not a short string")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise MalformedBucketError(f"torch {torch.__version__} has no dtype {str(dtype)[:40]!r}", name)
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS or not all(_is_count(one) for one in shape):
        raise MalformedBucketError(f"{str(shape)[:80]} is no shape", name)
    if not all(_is_count(one) for one in (start, size, offset)):
        raise MalformedBucketError("start, size and offset must be counts", name)
    piece = Piece(name, dtype, tuple(shape), start, size, offset)
    if piece.stop > piece.nbytes or start % piece.torch_dtype.itemsize or size % piece.torch_dtype.itemsize:
        raise MalformedBucketError(f"bytes {start} to {start + size} are not in a tensor of {piece.nbytes}", name)
    return piece


class Planner:
    """Gives each tensor its place. Sender and relays plan alike, so that they come to the same buckets.

    A tensor that fits a bucket is never split; a larger one fills buckets of its own, and its rest shares the last one.
    """

    def __init__(self, bucket_size: int) -> None:
        self._size = bucket_size
        self.current = Bucket(0, [])

    def place(self, name: str, tensor: torch.Tensor) -> Iterator[Piece | None]:
        """Yield the pieces of a tensor; None stands for "the bucket is full: call :meth:`begin_next` now"."""
        dtype = str(tensor.dtype).removeprefix("torch.")
        shape, nbytes = tuple(tensor.shape), tensor.numel() * tensor.dtype.itemsize
        longest = self._size - self._size % tensor.dtype.itemsize
        start = 0
        while True:
            size = min(nbytes - start, longest)
            offset = -(-self.current.used // ALIGNMENT) * ALIGNMENT
            if self.current.pieces and offset + size > self._size:
                yield None
                offset = 0
            piece = Piece(name, dtype, shape, start, size, offset)
            self.current.pieces.append(piece)
            self.current.used = offset + size
            yield piece
            start += size
            if start >= nbytes:
                break

    def begin_next(self) -> None:
        """Begin the next bucket."""
        self.current = Bucket(self.current.number + 1, [])


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
    """Copy a piece of a tensor to its place in a bucket, uint8 of shape ``[bucket_size]``.

    The whole tensor is given, on any device and whatever its strides; no second copy of it is made.
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
    """Copy bytes (uint8 of shape ``[n]``); other threads run meanwhile, which an assignment to a slice would not allow.

    In host memory it copies words of eight where they divide: torch copies single bytes a third slower there. Not on
    devices, of which some store int64 as int32.
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
