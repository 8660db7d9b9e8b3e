# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's checkpoint engine over any torch.distributed backend, and the backends' names on a vendor's platform."""

import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import fields
from functools import partial
from typing import Any

import ray
import torch
from verl.checkpoint_engine.base import CheckpointEngine, CheckpointEngineRegistry
from verl.plugin.platform import get_platform

from verl_hw_core import upstream
from verl_hw_core.errors import WeightTransferError
from verl_hw_core.platform import our_platform
from verl_hw_core.weight_sync import topology
from verl_hw_core.weight_sync.channel import Failure, FailureFoundError
from verl_hw_core.weight_sync.control import listen
from verl_hw_core.weight_sync.receiving import Receiver
from verl_hw_core.weight_sync.sending import Relay, Sender, Weights, drain, each
from verl_hw_core.weight_sync.session import Membership, Session
from verl_hw_core.weight_sync.topology import Endpoint, Settings, WorkerMetadata
from verl_hw_core.weight_sync.transfer import Place

_OF_VERLS_ENGINES = frozenset({"group_name", "rollout_dtype"})  # taken by verl's, without a meaning here


class CollectiveCheckpointEngine(CheckpointEngine):  # type: ignore[misc]
    """Sends weights from trainer rank 0 to all rollout workers by broadcast, bucket by bucket.

    Subclasses name the backend. Received tensors are views of a bucket, valid until the iterator is asked for a tensor
    of the next bucket: a consumer copies them, as with verl's own engines.

    Args:
        bucket_size: Bytes of a bucket.
        is_master: Whether this is the sender.
        **options: Fields of :class:`~verl_hw_core.weight_sync.topology.Settings`.

    Raises:
        ValueError: An option is unknown or cannot be right.
    """

    wire_format = "named_tensors"

    def __init__(self, bucket_size: int, is_master: bool = False, **options: Any) -> None:
        known = {one.name for one in fields(Settings)} - {"bucket_size"}
        own = {name: value for name, value in options.items() if name not in _OF_VERLS_ENGINES}
        if unknown := sorted(set(own) - known):
            raise ValueError(f"weight sync has no settings {unknown}; engine_kwargs may hold {sorted(known)}")
        self.settings = Settings(bucket_size=bucket_size, **own)
        self.is_master = is_master
        self.rank: int | None = None
        self._session: Session | None = None
        self._listener: socket.socket | None = None
        self._endpoint: Endpoint | None = None
        self._shapes: dict[str, tuple[int, ...]] = {}

    @classmethod
    def backend_name(cls) -> str:
        """Return the torch.distributed backend."""
        raise NotImplementedError

    def prepare(self) -> WorkerMetadata:
        """Say where this worker is and which group it has open; the sender begins to listen."""
        session = self._session
        sound = session is not None and session.sound()
        address = self.settings.address or ray.util.get_node_ip_address().strip("[]")
        if self.is_master:
            self._stop_listening()
            self._listener = listen(address)
            self._endpoint = Endpoint(address, self._listener.getsockname()[1], secrets.token_hex(32))
        return WorkerMetadata(
            node=ray.get_runtime_context().get_node_id() if ray.is_initialized() else socket.gethostname(),
            who=f"pid {os.getpid()} on {address}",
            group=session.me.group if session is not None and sound else None,
            rank=session.me.rank if session is not None and sound else None,
            world_size=session.me.world_size if session is not None and sound else None,
            endpoint=self._endpoint,
            multi_sender=self.settings.multi_sender,
        )

    @classmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[WorkerMetadata]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """Give out ranks from what :meth:`prepare` returned, trainer first; runs in the driver, without devices.

        Returns:
            Keyword arguments of :meth:`init_process_group`, one list entry a worker, for trainer and rollout.
        """
        return topology.build(actor_wg_world_size, rollout_world_size, metadata)

    def init_process_group(
        self, rank: int, world_size: int, senders: int, group: str, endpoint: Endpoint, roster: list[str]
    ) -> None:
        """Join the group, or go on with it when it is the one that is open.

        The arguments are those of :class:`~verl_hw_core.weight_sync.session.Membership`, with rank -1 for a trainer
        rank that only drains.

        Raises:
            WeightTransferError: The group did not come together in time.
        """
        self.rank = rank
        try:
            if self._session is not None and rank >= 0 and self._session.me.group == group:
                return
            self._close_session()
            if rank < 0:
                return
            me = Membership(rank, world_size, senders, group, endpoint, roster)
            backend = self.backend_name()
            session = Session(me, self.settings, Place.here(backend))
            session.open(backend, self._listener if rank == 0 else None)
            self._session = session
        finally:
            self._stop_listening()

    async def send_weights(self, weights: Weights, global_steps: int | None = None) -> dict[str, float]:
        """Send all weights of the trainer's step, or take part in gathering them.

        After a failure the rest of the weights is still drained: the trainer's other ranks gather them with this one
        and would wait for ever.

        Returns:
            Metrics of the transfer, empty on ranks that do not send.

        Raises:
            WeightTransferError: Some rank failed.
        """
        if self.rank is not None and self.rank < 0:
            await drain(weights)
            return {}
        session = self._opened()
        session.contents.clear()
        source = each(weights)
        make = partial(Sender, session, global_steps) if session.me.rank == 0 else partial(Relay, session)
        worker: Sender | Relay = self._begin(session, make)
        try:
            return await worker.run(source) or {}
        except FailureFoundError as found:
            error = session.fail(found.failure, worker.last_name)
            del worker  # its buckets
            await drain(source)
            raise error from found
        except BaseException as error:
            reason = f"producing the weights failed with {type(error).__name__}: {error}"
            told = session.fail(Failure(reason, session.me.rank, worker.bucket, worker.last_name))
            if isinstance(error, Exception):
                raise told from error
            raise

    async def receive_weights(self, global_steps: int | None = None) -> AsyncIterator[tuple[str, torch.Tensor]]:
        """Yield name and tensor of each weight, in the sender's order.

        A consumer that stops early fails the update on all ranks, and so does another step than the expected one.

        Raises:
            WeightTransferError: Some rank failed.
        """
        session = self._opened()
        session.contents.clear()
        receiver: Receiver = self._begin(session, partial(Receiver, session, global_steps, self._shapes))
        try:
            while True:
                bucket = await receiver.next_bucket()
                for name, tensor in receiver.tensors(bucket):
                    yield name, tensor
                if bucket.last:
                    break
            self._shapes = await receiver.finish(bucket)
        except FailureFoundError as found:
            raise session.fail(found.failure, receiver.last_name) from found
        except BaseException:
            # GeneratorExit above all: the consumer has dropped the iterator, for an error of its own.
            reason = "its consumer stopped taking weights after this tensor; see that process's own error"
            session.fail(Failure(reason, session.me.rank, receiver.bucket, receiver.last_name))
            raise

    def finalize(self) -> None:
        """Give memory back after an update, and close the group where ``rebuild_group`` says so."""
        session = self._session
        if session is None:
            return
        if self.settings.rebuild_group or session.broken:
            self._close_session()
        session.release()

    def _opened(self) -> Session:
        if self._session is None or self._session.broken:
            raise WeightTransferError(
                "no weight-sync group is open here: verl's CheckpointEngineManager calls prepare and "
                "init_process_group before each update"
            )
        return self._session

    def _begin(self, session: Session, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except Exception as error:
            reason = f"no room for its buckets of {self.settings.bucket_size} bytes: {type(error).__name__}: {error}"
            raise session.fail(Failure(reason, session.me.rank)) from error

    def _close_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None


class VendorEngine(CollectiveCheckpointEngine):
    """Over the vendor's own library, under its name."""

    @classmethod
    def backend_name(cls) -> str:
        """The library's name for torch."""
        return str(get_platform().spec.ccl_backend)


class DefaultEngine(CollectiveCheckpointEngine):
    """Over what the platform uses for collectives: ``nccl``, which verl's configurations name for every device."""

    @classmethod
    def backend_name(cls) -> str:
        """The platform's choice, FlagCX included."""
        return str(get_platform().communication_backend_name())


class FlagcxEngine(CollectiveCheckpointEngine):
    """Over FlagCX."""

    @classmethod
    def backend_name(cls) -> str:
        """FlagCX's name for torch."""
        return "flagcx"


class HostEngine(CollectiveCheckpointEngine):
    """Through host memory over gloo, where the vendor's library is missing or at fault."""

    @classmethod
    def backend_name(cls) -> str:
        """gloo's name for torch."""
        return "gloo"


def register(key: str) -> None:
    """Register our names of ``rollout.checkpoint_engine.backend`` if vendor ``key`` is the platform of this process.

    Elsewhere verl's own stay.
    """
    platform = our_platform()
    if platform is None or platform.spec.key != key:
        return
    if not upstream.check("weight-sync-name", "weight-sync-group"):
        return
    engines: dict[str, type[CollectiveCheckpointEngine]] = {"gloo": HostEngine, "nccl": DefaultEngine}
    if platform.spec.flagcx:
        engines["flagcx"] = FlagcxEngine
    if platform.spec.ccl_backend != "nccl":
        engines[platform.spec.ccl_backend] = VendorEngine
    for name, engine in engines.items():
        CheckpointEngineRegistry.register(name)(engine)
