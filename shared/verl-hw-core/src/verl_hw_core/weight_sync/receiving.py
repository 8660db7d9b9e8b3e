# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout's side of an update."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from verl_hw_core.weight_sync.failure import Failure, FailureFoundError
from verl_hw_core.weight_sync.layout import Bucket, MalformedBucketError
from verl_hw_core.weight_sync.rebuilding import Rebuilder
from verl_hw_core.weight_sync.sending import checksum
from verl_hw_core.weight_sync.session import Session


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

    Args:
        session: The group.
        step: The step that this side was told, None when unknown.
        known: Shapes of the last update.
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
