# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout's side of an update: where a bucket's bytes land, and how they become tensors again."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from verl_hw_core.weight_sync.channel import Failure, FailureFoundError
from verl_hw_core.weight_sync.layout import Bucket, MalformedBucketError, Piece, copy_bytes
from verl_hw_core.weight_sync.sending import checksum
from verl_hw_core.weight_sync.session import Session


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
        consumer may still read the last such tensor there, it is ``buffer``, as for all other buckets: the one that is
        free, uint8 of shape ``[bucket_size]``.
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
        """Take a piece's bytes, uint8 of shape ``[piece.size]``, and return the tensor if it is complete.

        A whole tensor is returned as a view of them.

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


@dataclass(frozen=True)
class _Announced:
    """A bucket that the sender has announced.

    Attributes:
        bucket: What it holds.
        content: The memory that it is received in.
        crc32: The sender's checksum, None when it made none.
    """

    bucket: Bucket
    content: torch.Tensor
    crc32: int | None


class Receiver:
    """A rollout rank in one update: while the consumer loads one bucket, the next one comes in.

    ``step`` is the one that this side was told, None when unknown; ``known`` are the shapes of the last update.
    """

    def __init__(self, session: Session, step: int | None, known: dict[str, tuple[int, ...]]) -> None:
        self._session = session
        self._step = step
        self._rebuilder = Rebuilder(session.whole, known)
        self._buffers = session.buckets(2)
        self._announced: dict[int, _Announced] = {}
        self._tensors = 0
        self._end: dict[str, Any] = {}
        # Both buckets at once, so that one follows the other without a pause.
        self._pending = deque(self._begin(number) for number in range(2))
        self.bucket = 0
        self.last_name: str | None = None

    async def next_bucket(self) -> Bucket:
        """Wait for the bucket that is due; the one after it is taken meanwhile.

        Raises:
            FailureFoundError: Some rank failed, or what came is not what was announced.
        """
        bucket: Bucket = await self._session.wait(self._pending.popleft(), self.bucket, self.last_name)
        return bucket

    def tensors(self, bucket: Bucket) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the tensors that are complete with this bucket, valid until the iterator has ended.

        Raises:
            FailureFoundError: A tensor was torn.
        """
        content = self._announced.pop(bucket.number).content
        for piece in bucket.pieces:
            try:
                tensor = self._rebuilder.add(piece, content[piece.offset : piece.offset + piece.size])
            except MalformedBucketError as error:
                raise FailureFoundError(self._failure(str(error), bucket.number, error.tensor)) from error
            if tensor is not None:
                self._tensors += 1
                self.last_name = piece.name
                yield piece.name, tensor
        # What the consumer still copies from this bucket must be done before it is written again.
        self._session.place.synchronize()
        self.bucket = bucket.number + 1
        if not bucket.last:
            self._pending.append(self._begin(bucket.number + 2))

    async def finish(self, last: Bucket) -> dict[str, tuple[int, ...]]:
        """Check the whole and wait until every rank has it.

        Returns:
            Shapes by name, for the next update.

        Raises:
            FailureFoundError: Something is missing, or some rank failed.
        """
        try:
            self._rebuilder.finish()
        except MalformedBucketError as error:
            raise FailureFoundError(self._failure(str(error), last.number, error.tensor)) from error
        found = {"tensors": self._tensors, "bytes": self._rebuilder.nbytes}
        if found != self._end:
            reason = f"the update is torn: the sender sent {self._end}, {found} came"
            raise FailureFoundError(self._failure(reason, last.number, last.tensors))
        spoke = self._session.spoke
        spoke.tell({"taken": last.number})
        await self._session.wait_for(lambda: spoke.next() is not None, last.number, last.tensors)
        return self._rebuilder.shapes

    def _begin(self, number: int) -> "Future[Bucket | None]":
        return self._session.broadcaster.submit(partial(self._await, number), partial(self._taken, number))

    def _await(self, number: int) -> torch.Tensor | None:
        """Wait until a bucket is announced and return memory for it, None after the last one; in a transfer thread."""
        if self._end:
            return None
        spoke = self._session.spoke
        spoke.tell({"at": number})
        message = spoke.await_next(number)
        try:
            bucket = Bucket.from_message(message, number, self._session.settings.bucket_size)
            self._rebuilder.check(bucket)
        except MalformedBucketError as error:
            raise FailureFoundError(self._failure(str(error), number, error.tensor)) from error
        self._session.contents[number] = bucket.tensors
        self._check_step(message, bucket)
        content = self._rebuilder.landing(bucket, self._buffers[number % 2])
        self._announced[number] = _Announced(bucket, content, message.get("crc32"))
        if bucket.last:
            self._end = {name: message.get(name) for name in ("tensors", "bytes")}
        return content

    def _taken(self, number: int) -> Bucket | None:
        """Return the bucket that has come, None after the last one; in a transfer thread."""
        if (announced := self._announced.get(number)) is None:
            return None
        self._check_content(announced)
        if not announced.bucket.last:  # that one is taken when the consumer has loaded everything
            self._session.spoke.tell({"taken": number})
        return announced.bucket

    def _check_step(self, message: dict[str, Any], bucket: Bucket) -> None:
        step = message.get("step")
        if None not in (step, self._step) and step != self._step:
            reason = f"the sender sends step {step}, this rank expects step {self._step}"
            raise FailureFoundError(self._failure(reason, bucket.number, bucket.tensors))

    def _check_content(self, announced: "_Announced") -> None:
        if not self._session.settings.checksum:
            return
        found, bucket = checksum(announced.content), announced.bucket
        if found != announced.crc32:
            reason = f"its CRC-32 is {found}, the sender's is {announced.crc32}: the bytes differ"
            raise FailureFoundError(self._failure(reason, bucket.number, bucket.tensors))

    def _failure(self, reason: str, bucket: int, tensor: str | None) -> Failure:
        return Failure(reason, self._session.me.rank, bucket, tensor)
