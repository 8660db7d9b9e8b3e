# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout's side of a bucket: where its bytes land, and how they become tensors again."""

from collections.abc import Callable

import torch

from verl_hw_core.weight_sync.layout import Bucket, MalformedBucketError, Piece
from verl_hw_core.weight_sync.packing import copy_bytes


class Rebuilder:
    """Turns the pieces back into tensors, in order.

    The transfer thread asks for each bucket :meth:`check` and :meth:`landing`, up to two buckets before the consumer's
    thread gives its pieces to :meth:`add`.

    Args:
        memory: Gives uint8 memory of so many bytes, in which a tensor larger than a bucket is put together. It may be
            the same memory each time.
        known: Shapes of an earlier update: the same name must come with the same shape.
    """

    def __init__(self, memory: Callable[[int], torch.Tensor], known: dict[str, tuple[int, ...]]) -> None:
        self._memory = memory
        self._known = known
        self._open: tuple[Piece, torch.Tensor] | None = None
        self._done = 0
        self._landing: tuple[Piece, torch.Tensor | None] | None = None
        self._landed = 0
        self._lent = -2  # the bucket that completed the last split tensor
        self._placed: dict[str, torch.Tensor] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.nbytes = 0

    def check(self, bucket: Bucket) -> None:
        """Refuse a bucket with a tensor of another shape than in the last update, before its bytes are awaited.

        Raises:
            MalformedBucketError: There is one; the text holds both shapes.
        """
        for piece in bucket.pieces:
            known = self._known.get(piece.name, piece.shape)
            if known != piece.shape:
                raise MalformedBucketError(
                    f"its shape is {list(piece.shape)}, in the last update it was {list(known)}", piece.name
                )

    def landing(self, bucket: Bucket, buffer: torch.Tensor) -> torch.Tensor:
        """Return the memory that a bucket is received in: uint8 of shape ``[bucket.used]``.

        That of a tensor larger than a bucket is the memory in which it is put together, which saves a copy. While the
        consumer may still read the last such tensor there, it is ``buffer``, as for all other buckets.

        Args:
            bucket: What it will hold.
            buffer: The bucket that is free, uint8 of shape ``[bucket_size]``.
        """
        content = buffer[: bucket.used]
        for piece in bucket.pieces:
            if piece.is_whole:
                continue
            if self._landing is None:
                self._landing, self._landed = (piece, self._place(piece, bucket.number)), 0
            first, whole = self._landing
            if not piece.follows(first, self._landed):
                break  # torn; to be told when it is added
            if whole is not None and len(bucket.pieces) == 1:
                content = whole[piece.start : piece.stop]
            self._landed = piece.stop
            if piece.stop == piece.nbytes:
                self._landing, self._lent = None, bucket.number
        return content

    def _place(self, piece: Piece, bucket: int) -> torch.Tensor | None:
        if self._lent >= bucket - 1:  # with earlier buckets the consumer is done
            return None
        self._placed[piece.name] = whole = self._memory(piece.nbytes)
        return whole

    def add(self, piece: Piece, content: torch.Tensor) -> torch.Tensor | None:
        """Take a piece's bytes and return the tensor if it is complete.

        Args:
            piece: What it is.
            content: Its bytes, uint8 of shape ``[piece.size]``. A whole tensor is returned as a view of them.

        Raises:
            MalformedBucketError: The pieces of a split tensor do not follow each other.
        """
        self.nbytes += piece.size
        if self._open is None and piece.is_whole:
            self.shapes[piece.name] = piece.shape
            return content.view(piece.torch_dtype).view(piece.shape)
        if self._open is None:
            placed = self._placed.pop(piece.name, None)
            self._open, self._done = (piece, self._memory(piece.nbytes) if placed is None else placed), 0
        first, whole = self._open
        if not piece.follows(first, self._done):
            raise MalformedBucketError(
                f"{first.name} was cut off after {self._done} of {first.nbytes} bytes", first.name
            )
        target = whole[piece.start : piece.stop]
        if target.data_ptr() != content.data_ptr():
            copy_bytes(target, content)
        self._done = piece.stop
        if self._done < piece.nbytes:
            return None
        self._open = None
        self.shapes[piece.name] = piece.shape
        return whole.view(piece.torch_dtype).view(piece.shape)

    def finish(self) -> None:
        """Check that no tensor is left open.

        Raises:
            MalformedBucketError: One is.
        """
        if self._open is not None:
            first, _ = self._open
            raise MalformedBucketError(f"the update ended after {self._done} of its {first.nbytes} bytes", first.name)
