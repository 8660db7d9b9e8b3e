# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The trainer's side of an update: pack, announce, broadcast; or relay, or only drain."""

import time
import zlib
from collections.abc import AsyncIterator
from concurrent.futures import Future
from functools import partial
from typing import Any

import torch

from verl_hw_core.weight_sync.channel import Failure, FailureFoundError
from verl_hw_core.weight_sync.layout import Bucket, Planner, UnsendableTensorError, check, fill
from verl_hw_core.weight_sync.session import Session

Weights = Any  # an iterable or async iterable of (name, tensor): verl's engines give either


async def each(weights: Weights) -> AsyncIterator[tuple[str, torch.Tensor]]:
    """Iterate over weights, whichever kind of iterable they are."""
    if hasattr(weights, "__aiter__"):
        async for pair in weights:
            yield pair
    else:
        for pair in weights:
            yield pair


async def drain(weights: Weights) -> None:
    """Run through the weights: gathering each is a collective of the trainer, in which all its ranks take part."""
    async for _ in each(weights):
        pass


def checksum(content: torch.Tensor) -> int:
    """CRC-32 of a bucket's bytes, computed on the host."""
    return zlib.crc32(content.cpu().numpy())


class Sender:
    """Rank 0 in one update, of the trainer's step, which receivers compare with theirs."""

    def __init__(self, session: Session, step: int | None) -> None:
        self._session = session
        self._step = step
        self._planner = Planner(session.settings.bucket_size)
        self._buffers = session.buckets(2)
        self._pending: tuple[Bucket, Future[None]] | None = None
        self._tensors = 0
        self._bytes = 0
        self.last_name: str | None = None

    @property
    def bucket(self) -> int:
        """Number of the bucket being packed."""
        return self._planner.current.number

    async def run(self, weights: AsyncIterator[tuple[str, torch.Tensor]]) -> dict[str, float]:
        """Send all weights; return when every rank has taken the last bucket.

        Returns:
            Metrics: GiB sent and GiB per second.

        Raises:
            FailureFoundError: Some rank failed, or a tensor cannot be sent.
        """
        began = time.perf_counter()
        self._session.hub.start_over()
        async for name, tensor in weights:
            self.last_name = name
            await self._pack(name, tensor)
        await self._flush(last=True)
        last = await self._settle()
        hub = self._session.hub
        await self._session.wait_for(lambda: hub.all_took(last.number), last.number, last.tensors)
        hub.tell({"done": True}, last.number)
        gib = self._bytes / 2**30
        return {"weight_sync/gib": gib, "weight_sync/gib_per_second": gib / (time.perf_counter() - began)}

    async def _pack(self, name: str, tensor: torch.Tensor) -> None:
        try:
            check(tensor)
        except UnsendableTensorError as error:
            raise FailureFoundError(Failure(str(error), 0, self.bucket, name)) from error
        with torch.no_grad():
            for piece in self._planner.place(name, tensor):
                if piece is None:
                    await self._flush(last=False)
                else:
                    fill(self._buffers[self.bucket % 2], piece, tensor)
                    self._bytes += piece.size
        self._tensors += 1

    async def _flush(self, *, last: bool) -> None:
        """Announce the bucket and start its broadcast; packing of the next one goes on meanwhile."""
        bucket = self._planner.current
        bucket.last = last
        content = self._buffers[bucket.number % 2][: bucket.used]
        self._session.place.synchronize()
        message = bucket.as_message()
        if self._session.settings.checksum:
            message["crc32"] = checksum(content)
        if last:
            message |= {"tensors": self._tensors, "bytes": self._bytes}
        self._session.contents[bucket.number] = bucket.tensors
        self._session.hear(bucket.number)
        self._session.hub.tell(message | {"step": self._step}, bucket.number)
        sent = self._session.broadcaster.submit(lambda: content, lambda: None)  # that it is out, its future says
        before, self._pending = self._pending, (bucket, sent)
        if self._session.me.senders > 1:
            # Relays also take part in the trainer's own collectives: one order on all ranks, or both wait for ever.
            await self._session.wait(self._pending[1], bucket.number, bucket.tensors)
        elif before is not None:  # its buffer is packed next; this bucket follows it without a pause
            await self._session.wait(before[1], before[0].number, before[0].tensors)
        if not last:
            self._planner.begin_next()

    async def _settle(self) -> Bucket:
        assert self._pending is not None  # noqa: S101 - a mistake of ours
        bucket, future = self._pending
        await self._session.wait(future, bucket.number, bucket.tensors)
        self._pending = None
        return bucket


class Relay:
    """A trainer rank on the sender's node: joins each broadcast, so that the library can fan out, and drops it.

    It finds the buckets' borders itself: it may not wait for the sender's word while the sender waits for its part in
    gathering the next weight.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._planner = Planner(session.settings.bucket_size)
        (self._buffer,) = session.buckets(1)
        self.last_name: str | None = None

    @property
    def bucket(self) -> int:
        """Number of the current bucket."""
        return self._planner.current.number

    async def run(self, weights: AsyncIterator[tuple[str, torch.Tensor]]) -> None:
        """Join all broadcasts.

        Raises:
            FailureFoundError: Some rank failed, or the sender's weights are not ours.
        """
        async for name, tensor in weights:
            self.last_name = name
            for piece in self._planner.place(name, tensor):
                if piece is None:
                    await self._join(last=False)
                    self._planner.begin_next()
        await self._join(last=True)
        number, tensors = self.bucket, self._planner.current.tensors
        await self._session.wait_for(lambda: self._session.spoke.next() is not None, number, tensors)

    async def _join(self, *, last: bool) -> None:
        bucket = self._planner.current
        bucket.last = last
        taken = partial(self._session.spoke.tell, {"taken": bucket.number})
        future = self._session.broadcaster.submit(partial(self._take, bucket), taken)
        await self._session.wait(future, bucket.number, bucket.tensors)

    def _take(self, bucket: Bucket) -> torch.Tensor:
        """Compare the bucket with what the sender says and return memory for it; in the transfer thread."""
        spoke = self._session.spoke
        spoke.tell({"at": bucket.number})
        message = spoke.await_next(bucket.number)
        found = Bucket.from_message(message, bucket.number, self._session.settings.bucket_size)
        if found != bucket:
            raise FailureFoundError(
                Failure(
                    f"the sender announced {_difference(found, bucket)}: trainer ranks yield different weights",
                    self._session.me.rank,
                    bucket.number,
                    self.last_name,
                )
            )
        return self._buffer[: bucket.used]


def _difference(found: Bucket, own: Bucket) -> str:
    for theirs, ours in zip(found.pieces, own.pieces, strict=False):
        if theirs != ours:
            theirs_and_ours = [f"{one.name} {one.dtype} {list(one.shape)}" for one in (theirs, ours)]
            return ", here it is ".join(theirs_and_ours)
    return f"{len(found.pieces)} tensors in this bucket, here they are {len(own.pieces)}"
