# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a user may set, what each worker says of itself in ``prepare``, and the ranks that the driver gives out."""

import secrets
from dataclasses import dataclass, field
from typing import Any

ALIGNMENT = 256
"""Bytes to which every tensor in a bucket is aligned: enough for any dtype and for vendors' vector loads."""


@dataclass(frozen=True)
class Settings:
    """Settings of one engine, from ``rollout.checkpoint_engine.engine_kwargs.<backend>``.

    All ranks must agree on the bucket size and on ``checksum``.

    Attributes:
        bucket_size: Bytes of a bucket; each side that holds data keeps two.
        rendezvous_timeout: Seconds in which every rank must have joined a new process group.
        bucket_timeout: Seconds that one bucket may take, the consumer's loading of an earlier one included.
        checksum: Whether each bucket is checked by CRC-32, at the price of a copy to the host on each side.
        multi_sender: Whether trainer ranks on the sender's node join the group as relays (verl's meaning).
        rebuild_group: Whether the process group is closed after each update.
        address: Address that the sender listens on; by default that of its Ray node.
    """

    bucket_size: int
    rendezvous_timeout: float = 600.0
    bucket_timeout: float = 120.0
    checksum: bool = False
    multi_sender: bool = False
    rebuild_group: bool = False
    address: str | None = None

    def __post_init__(self) -> None:
        if self.bucket_size < ALIGNMENT:
            raise ValueError(
                f"bucket_size is {self.bucket_size} bytes, needs at least {ALIGNMENT}: raise "
                "rollout.checkpoint_engine.update_weights_bucket_megabytes"
            )
        for name in ("rendezvous_timeout", "bucket_timeout"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be a positive number of seconds, got {getattr(self, name)!r}")


@dataclass(frozen=True)
class Endpoint:
    """Where rank 0 listens.

    Attributes:
        host: Address of its node.
        port: TCP port.
        token: Secret that joining ranks must know; travels through Ray only.
    """

    host: str
    port: int
    token: str = field(repr=False)


@dataclass(frozen=True)
class WorkerMetadata:
    """What a worker says of itself before an update.

    Attributes:
        node: Its node: relays are taken from the sender's.
        who: Process and node, for messages.
        group: Id of the process group that it has open and sound, None when it has none.
        rank: Its rank there.
        world_size: That group's size.
        endpoint: Where it listens; the sender only.
        multi_sender: Whether the sender wants relays.
    """

    node: str
    who: str
    group: str | None = None
    rank: int | None = None
    world_size: int | None = None
    endpoint: Endpoint | None = None
    multi_sender: bool = False


def build(
    trainers: int, rollouts: int, metadata: list[WorkerMetadata]
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Give out ranks: the sender 0, then relays, then rollout workers; trainer ranks that only drain get -1.

    A group that all of them have open, with these ranks, is used again; else all build a new one. ``rollouts`` counts
    the workers of all replicas. In the metadata the trainer's come first, and the first one sends.

    Raises:
        ValueError: The numbers do not fit, or the first trainer worker does not listen.
    """
    if trainers < 1 or len(metadata) != trainers + rollouts:
        raise ValueError(f"{trainers} trainer and {rollouts} rollout workers, but metadata of {len(metadata)}")
    sender = metadata[0]
    if sender.endpoint is None:
        raise ValueError("the first trainer worker must be the sender: its engine was not built with is_master=True")
    ranks = _trainer_ranks(metadata[:trainers], sender)
    senders = sum(rank >= 0 for rank in ranks)
    world_size = senders + rollouts
    ranks += range(senders, world_size)
    members = [(rank, one) for rank, one in zip(ranks, metadata, strict=True) if rank >= 0]
    common = {
        "world_size": world_size,
        "senders": senders,
        "group": _group_to_keep(members, world_size) or secrets.token_hex(8),
        "endpoint": sender.endpoint,
        "roster": [_describe(rank, one, senders) for rank, one in members],
    }
    trainer = {"rank": ranks[:trainers]} | {name: [value] * trainers for name, value in common.items()}
    rollout = {"rank": ranks[trainers:]} | {name: [value] * rollouts for name, value in common.items()}
    return trainer, rollout


def _trainer_ranks(trainers: list[WorkerMetadata], sender: WorkerMetadata) -> list[int]:
    ranks, following = [0], 1
    for one in trainers[1:]:
        relays = sender.multi_sender and one.node == sender.node
        ranks.append(following if relays else -1)
        following += relays
    return ranks


def _group_to_keep(members: list[tuple[int, WorkerMetadata]], world_size: int) -> str | None:
    wanted = members[0][1].group
    same = all(one.group == wanted and one.rank == rank and one.world_size == world_size for rank, one in members)
    return wanted if same else None


def _describe(rank: int, one: WorkerMetadata, senders: int) -> str:
    role = "sender" if rank == 0 else "relay" if rank < senders else f"rollout worker {rank - senders}"
    return f"{role}, {one.who}"
