# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a user may set: ``rollout.checkpoint_engine.engine_kwargs.<backend>``."""

from dataclasses import dataclass

ALIGNMENT = 256
"""Bytes to which every tensor in a bucket is aligned: enough for any dtype and for vendors' vector loads."""


@dataclass(frozen=True)
class Settings:
    """Settings of one engine; all ranks must agree on the bucket size and on ``checksum``.

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
