# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""An open weight-sync group in one process: control connection, data's way, and how it ends."""

import asyncio
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass, replace
from typing import Any

import torch

from verl_hw_core.errors import WeightTransferError
from verl_hw_core.weight_sync import group as process_group
from verl_hw_core.weight_sync.channel import Failure, FailureFoundError
from verl_hw_core.weight_sync.control import PROTOCOL, Gathering, Hub, Spoke
from verl_hw_core.weight_sync.topology import Endpoint, Settings
from verl_hw_core.weight_sync.transfer import Broadcaster, Place

_SLICE_SECONDS = 0.05
_REASON_SECONDS = 3.0  # for the rank that knows why a collective failed to tell


@dataclass(frozen=True)
class Membership:
    """This process's part in a group.

    Attributes:
        rank: Its rank; 0 sends.
        world_size: Ranks of the group.
        senders: Ranks of the trainer: those after 0 are relays.
        group: Id of the group.
        endpoint: Where rank 0 listens.
        roster: Who each rank is.
    """

    rank: int
    world_size: int
    senders: int
    group: str
    endpoint: Endpoint
    roster: list[str]


class Session:
    """One process's end of a group. :meth:`fail` ends it everywhere."""

    def __init__(self, me: Membership, settings: Settings, place: Place) -> None:
        self.me = me
        self.settings = settings
        self.place = place
        self.broadcaster = Broadcaster(place)
        self._control: Hub | Spoke | None = None
        self._store: Any = None
        self.broken = False
        self.contents: dict[int, str | None] = {}
        """Tensors of the buckets announced so far in this update, for messages."""
        self._buckets: list[torch.Tensor] = []
        self._whole: torch.Tensor | None = None

    def buckets(self, count: int) -> list[torch.Tensor]:
        """Return this process's buckets; they are kept until :meth:`release`."""
        while len(self._buckets) < count:
            self._buckets.append(self.place.bucket(self.settings.bucket_size))
        return self._buckets[:count]

    def whole(self, nbytes: int) -> torch.Tensor:
        """Return memory in which to put a tensor together that is larger than a bucket: uint8 of shape ``[nbytes]``.

        In host memory it is kept like the buckets: touching new pages takes as long as the transfer. A device's
        allocator keeps what was freed, so there it is new each time.
        """
        if self.place.device.type != "cpu":
            return self.place.bucket(nbytes)
        if self._whole is None or self._whole.numel() < nbytes:
            self._whole = self.place.bucket(nbytes)
        return self._whole[:nbytes]

    def release(self) -> None:
        """Give the buckets' memory back."""
        self._buckets = []
        self._whole = None
        self.place.release()

    @property
    def hub(self) -> Hub:
        """The control connections, on rank 0."""
        assert isinstance(self._control, Hub)  # noqa: S101 - a mistake of ours
        return self._control

    @property
    def spoke(self) -> Spoke:
        """The control connection, on other ranks."""
        assert isinstance(self._control, Spoke)  # noqa: S101 - a mistake of ours
        return self._control

    @property
    def patience(self) -> float:
        """Seconds to wait for a bucket: longer on receivers, so that the sender, which sees all ranks, speaks first."""
        seconds = self.settings.bucket_timeout
        return seconds if self.me.rank == 0 else seconds + min(5.0, seconds / 4)

    def open(self, backend: str, listener: socket.socket | None) -> None:
        """Bring the group together over a torch.distributed backend; ``listener`` is rank 0's listening socket.

        Raises:
            WeightTransferError: Some rank is missing, differs, or cannot open the backend.
        """
        deadline = time.monotonic() + self.settings.rendezvous_timeout
        try:
            if listener is not None:
                self._gather(listener, backend, deadline)
            else:
                self._join(backend, deadline + min(5.0, self.settings.rendezvous_timeout / 4))
        except FailureFoundError as found:
            raise self.fail(found.failure) from found
        except BaseException as error:
            self.fail(Failure(f"could not open the group: {type(error).__name__}: {error}", rank=self.me.rank))
            raise

    def _terms(self, backend: str) -> dict[str, Any]:
        """What all ranks must agree on."""
        return {
            "protocol": PROTOCOL,
            "group": self.me.group,
            "backend": backend,
            "bucket_size": self.settings.bucket_size,
            "checksum": self.settings.checksum,
        }

    def _gather(self, listener: socket.socket, backend: str, deadline: float) -> None:
        endpoint = self.me.endpoint
        gathering = Gathering(listener, endpoint.token, self.me.world_size, self._terms(backend))
        try:
            gathering.run(deadline)
        finally:
            self._control = Hub(gathering.joined)
        self._store, port = process_group.serve_store(endpoint.host, self.settings.rendezvous_timeout)
        self.hub.tell({"store": port})
        self._open_backend(backend, endpoint.host, deadline)
        self._wait_until(lambda: len(self.hub.ready) == self.me.world_size - 1, deadline)
        self.hub.tell({"start": True})

    def _join(self, backend: str, deadline: float) -> None:
        endpoint = self.me.endpoint
        self._control = Spoke.join(
            endpoint.host, endpoint.port, endpoint.token, self.me.rank, self._terms(backend), deadline
        )
        port = self._expect("store", deadline)
        self._store = process_group.reach_store(endpoint.host, int(port), self.settings.rendezvous_timeout)
        self._open_backend(backend, process_group.own_address(endpoint.host, endpoint.port), deadline)
        self.spoke.tell({"ready": True})
        self._expect("start", deadline)

    def _open_backend(self, backend: str, address: str, deadline: float) -> None:
        limit = self.patience * 2.5 + 5  # two buckets, and ours come first: some libraries end the process at theirs
        me, store = self.me, self._store
        future = self.broadcaster.open(
            lambda: process_group.make_backend(backend, store, me.rank, me.world_size, limit, me.group, address)
        )
        self._wait_until(lambda: future.done() or bool(wait_for_futures([future], _SLICE_SECONDS).done), deadline)
        if (error := future.exception()) is not None:
            reason = self._reason_or_none(None)
            own = Failure(f"opening {backend} failed with {type(error).__name__}: {error}", rank=me.rank)
            raise FailureFoundError(reason or own) from error

    def _expect(self, name: str, deadline: float) -> Any:
        return self._wait_until(self.spoke.next, deadline).get(name)

    def _wait_until(self, ask: Callable[[], Any], deadline: float) -> Any:
        """Return what ``ask()`` gives as soon as it gives something, and hear meanwhile."""
        while not (found := ask()):
            self.hear(None)
            if time.monotonic() > deadline:
                late = self.hub.ready if self.me.rank == 0 else {self.me.rank}
                missing = sorted(set(range(1, self.me.world_size)) - late) or [0]
                reason = f"the group did not open within {self.settings.rendezvous_timeout:g} s"
                raise FailureFoundError(Failure(reason, rank=missing[0] if self.me.rank == 0 else 0))
            time.sleep(0.002)
        return found

    def hear(self, bucket: int | None) -> None:
        """Take in what the others have said.

        Raises:
            FailureFoundError: One has failed or ended.
        """
        if self._control is not None:
            self._control.hear(bucket)

    async def wait(self, future: "Future[Any]", bucket: int, tensor: str | None) -> Any:
        """Wait for a call of the transfer thread, and hear meanwhile; return the call's result.

        The call moves ``bucket``, in which is ``tensor``, as far as known.

        Raises:
            FailureFoundError: It failed, took too long, or some rank failed.
        """
        wrapped = asyncio.wrap_future(future)
        wrapped.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, whoever leaves early
        deadline = time.monotonic() + self.patience
        while not (await asyncio.wait({wrapped}, timeout=_SLICE_SECONDS))[0]:
            self.hear(bucket)
            if time.monotonic() > deadline:
                raise FailureFoundError(self._overdue(bucket, tensor))
        try:
            return wrapped.result()
        except FailureFoundError:
            raise
        except Exception as error:
            # Of a collective that failed, the rank that is gone is the reason; the library knows no names.
            reason = await asyncio.to_thread(self._reason_or_none, bucket)
            text = f"the collective library failed with {type(error).__name__}: {error}"
            raise FailureFoundError(reason or Failure(text, self.me.rank, bucket, tensor)) from error

    async def wait_for(self, done: Callable[[], bool], bucket: int, tensor: str | None) -> None:
        """Wait until ``done()``, and hear meanwhile.

        Raises:
            FailureFoundError: It took too long, or some rank failed.
        """
        deadline = time.monotonic() + self.patience
        while True:
            self.hear(bucket)
            if done():
                return
            if time.monotonic() > deadline:
                raise FailureFoundError(self._overdue(bucket, tensor))
            await asyncio.sleep(0.001)

    def _overdue(self, bucket: int, tensor: str | None) -> Failure:
        seconds = f"within {self.patience:g} s (bucket_timeout)"
        if self.me.rank != 0:
            return Failure(f"sent nothing {seconds}", 0, bucket, tensor)
        laggards = self.hub.laggards(bucket) or [0]
        more = f"; so did ranks {laggards[1:]}" if laggards[1:] else ""
        return Failure(f"did not take the bucket {seconds}{more}", laggards[0], bucket, tensor)

    def _reason_or_none(self, bucket: int | None) -> Failure | None:
        deadline = time.monotonic() + _REASON_SECONDS
        while time.monotonic() < deadline:
            try:
                self.hear(bucket)
            except FailureFoundError as found:
                return found.failure
            time.sleep(0.02)
        return None

    def fail(self, failure: Failure, tensor: str | None = None) -> WeightTransferError:
        """End the group on all ranks and return what to raise.

        ``tensor`` is the last one here, named when nothing better is known.
        """
        if failure.tensor is None and failure.bucket is not None:
            failure = replace(failure, tensor=self.contents.get(failure.bucket) or tensor)
        if not self.broken:
            self.broken = True
            self._leave(failure)
        return failure.error(self.me.roster)

    def close(self) -> None:
        """Leave the group."""
        if not self.broken:
            self.broken = True
            self._leave(None)

    def _leave(self, failure: Failure | None) -> None:
        if self._control is not None:
            self._control.close(failure)
        self.broadcaster.close(broken=failure is not None)
        self._store = None
        self._buckets = []
        self._whole = None

    def sound(self) -> bool:
        """Whether the group can be used for another update: nobody has ended or failed since the last one."""
        if self.broken or self._control is None:
            return False
        try:
            self.hear(None)
        except FailureFoundError:
            return False
        return True
