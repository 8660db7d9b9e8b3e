# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The control connections of a weight-sync group: a star with the sender in the middle.

They carry, in order, what each bucket holds, who has taken it, and failures. A process that ends is noticed at once,
since its connection closes.
"""

import socket
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any

from verl_hw_core.weight_sync.channel import (
    Channel,
    ChannelClosedError,
    Failure,
    FailureFoundError,
    check_answer,
    greet_stranger,
    join,
    wait_for,
)

PROTOCOL = 1
"""Raised when messages change; ranks with different ones do not talk."""

_GREETING_SECONDS = 10.0
_SEND_SECONDS = 10.0
_FAREWELL_SECONDS = 2.0
_SLICE_SECONDS = 0.1


def listen(host: str) -> socket.socket:
    """Open a listening socket on one address, on a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.bind((host, 0))
    except OSError:
        listener.close()
        raise
    listener.listen(128)
    listener.setblocking(False)
    return listener


class Gathering:
    """The sender's side while a group comes together: accepts the other ranks, and nobody else."""

    def __init__(self, listener: socket.socket, token: str, world_size: int, terms: dict[str, Any]) -> None:
        self._listener = listener
        self._token = token
        self._terms = terms
        self._missing = set(range(1, world_size))
        self._strangers: list[tuple[Channel, str, float]] = []
        self.refused = 0
        self.joined: dict[int, Channel] = {}

    def run(self, deadline: float) -> None:
        """Accept until all ranks are there.

        Raises:
            FailureFoundError: Some are not there in time, or one has other terms.
        """
        try:
            while self._missing:
                if time.monotonic() > deadline:
                    raise FailureFoundError(self._late())
                if wait_for(self._listener, 0.02 if self._strangers else _SLICE_SECONDS):
                    self._accept()
                for stranger in tuple(self._strangers):
                    # One by one: a failure below must leave those alone that have joined.
                    if self._hear(*stranger):
                        self._strangers.remove(stranger)
        finally:
            for channel, _, _ in self._strangers:
                channel.close()

    def _late(self) -> Failure:
        late = sorted(self._missing)
        refused = f"; {self.refused} connections did not know the token" if self.refused else ""
        return Failure(f"did not join in time (missing ranks: {late}){refused}", rank=late[0])

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # the client was gone before
        try:
            channel, nonce = greet_stranger(connection)
        except ChannelClosedError:
            connection.close()
            return
        self._strangers.append((channel, nonce, time.monotonic() + _GREETING_SECONDS))

    def _hear(self, channel: Channel, nonce: str, deadline: float) -> bool:
        """Whether the stranger is done with: joined, refused or gone."""
        try:
            answer = channel.receive()
            if answer is None and time.monotonic() < deadline:
                return False
            reply = None if answer is None else check_answer(self._token, nonce, answer)
            if answer is not None and reply is not None and self._admit(channel, answer, reply):
                return True
        except ChannelClosedError:
            channel.close()
            return True
        self.refused += 1
        channel.close()
        return True

    def _admit(self, channel: Channel, answer: dict[str, Any], reply: dict[str, Any]) -> bool:
        rank = answer["rank"]
        if rank not in self._missing:
            return False
        differing = {name: answer.get(name) for name, value in self._terms.items() if answer.get(name) != value}
        if differing:
            wanted = {name: self._terms[name] for name in differing}
            failure = Failure(f"its settings {differing} differ from the sender's {wanted}", rank=rank)
            channel.send(failure.as_message(), _SEND_SECONDS)
            channel.finish()
            raise FailureFoundError(failure)
        channel.send(reply, _SEND_SECONDS)
        channel.trust()
        self._missing.discard(rank)
        self.joined[rank] = channel
        return True


class Hub:
    """The sender's end: tells all ranks, hears each."""

    def __init__(self, channels: dict[int, Channel]) -> None:
        self._channels = channels
        self.at = dict.fromkeys(channels, -1)
        self.taken = dict.fromkeys(channels, -1)
        self.ready: set[int] = set()

    def tell(self, message: dict[str, Any], bucket: int | None = None) -> None:
        """Send a message to every rank.

        Raises:
            FailureFoundError: One cannot be reached.
        """
        for rank, channel in self._channels.items():
            try:
                channel.send(message, _SEND_SECONDS)
            except ChannelClosedError as error:
                raise FailureFoundError(self._why_closed(rank, channel, str(error), bucket)) from error

    def hear(self, bucket: int | None = None) -> None:
        """Take in what the ranks have said, without waiting.

        Raises:
            FailureFoundError: One has failed or ended.
        """
        for rank, channel in self._channels.items():
            try:
                while (message := channel.receive()) is not None:
                    self._note(rank, message)
            except ChannelClosedError as error:
                last = self.at[rank] if self.at[rank] >= 0 else bucket
                raise FailureFoundError(Failure(f"it ended: {error}", rank=rank, bucket=last)) from error

    def _note(self, rank: int, message: dict[str, Any]) -> None:
        if "error" in message:
            raise FailureFoundError(Failure.from_message(message["error"]))
        if message.get("ready"):
            self.ready.add(rank)
        for name, known in (("at", self.at), ("taken", self.taken)):
            if type(message.get(name)) is int:
                known[rank] = max(known[rank], message[name])

    def _why_closed(self, rank: int, channel: Channel, text: str, bucket: int | None) -> Failure:
        """What the rank said before it closed is the better reason."""
        try:
            while (message := channel.receive()) is not None:
                self._note(rank, message)
        except FailureFoundError as found:
            return found.failure
        except ChannelClosedError as error:
            text = str(error)
        return Failure(f"it ended: {text}", rank=rank, bucket=bucket)

    def laggards(self, bucket: int) -> list[int]:
        """Return the ranks that have not come to this bucket, or else those that have not taken it."""
        absent = [rank for rank, at in self.at.items() if at < bucket]
        return absent or [rank for rank, taken in self.taken.items() if taken < bucket]

    def all_took(self, bucket: int) -> bool:
        """Whether every rank has taken this bucket."""
        return all(taken >= bucket for taken in self.taken.values())

    def start_over(self) -> None:
        """Begin to count buckets anew, for the next update."""
        for known in (self.at, self.taken):
            known.update(dict.fromkeys(known, -1))

    def close(self, failure: Failure | None = None) -> None:
        """Close all connections, after telling the failure."""
        _close(list(self._channels.values()), failure)


class Spoke:
    """Every other rank's end."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._inbox: deque[dict[str, Any]] = deque()
        self._hearing = threading.Lock()  # the transfer thread hears too
        self._failure: Failure | None = None

    @classmethod
    def join(cls, host: str, port: int, token: str, rank: int, terms: dict[str, Any], deadline: float) -> "Spoke":
        """Join the sender's group.

        Raises:
            FailureFoundError: Nobody listens, the token is wrong, or the terms differ.
        """
        try:
            return cls(join(host, port, token, rank, terms, deadline))
        except ChannelClosedError as error:
            raise FailureFoundError(Failure(f"could not join the sender: {error}", rank=rank)) from error

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to the sender.

        Raises:
            FailureFoundError: It cannot be reached.
        """
        try:
            self._channel.send(message, _SEND_SECONDS)
        except ChannelClosedError as error:
            self.hear()  # its own words are the better reason
            raise FailureFoundError(Failure(f"it ended: {error}", rank=0)) from error

    def hear(self, bucket: int | None = None) -> None:
        """Take in what the sender has said, without waiting; nothing while :meth:`await_next` listens.

        Raises:
            FailureFoundError: It has failed or ended, or passes on another rank's failure.
        """
        if self._hearing.acquire(blocking=False):
            try:
                self._take_in(bucket)
            finally:
                self._hearing.release()

    def _take_in(self, bucket: int | None) -> None:
        if self._failure is not None:  # the other thread may have taken it in
            raise FailureFoundError(self._failure)
        try:
            while (message := self._channel.receive()) is not None:
                if "error" in message:
                    self._failure = Failure.from_message(message["error"])
                    raise FailureFoundError(self._failure)
                self._inbox.append(message)
        except ChannelClosedError as error:
            if not self._inbox:
                raise FailureFoundError(Failure(f"it ended: {error}", rank=0, bucket=bucket)) from error

    def next(self) -> dict[str, Any] | None:
        """Return the next message taken in."""
        return self._inbox.popleft() if self._inbox else None

    def await_next(self, bucket: int) -> dict[str, Any]:
        """Wait for the next message; who calls it bounds the time, from another thread.

        Raises:
            FailureFoundError: As :meth:`hear`.
        """
        with self._hearing:
            while (message := self.next()) is None:
                self._take_in(bucket)
                if not self._inbox:
                    wait_for(self._channel, _SLICE_SECONDS)
            return message

    def close(self, failure: Failure | None = None) -> None:
        """Close the connection, after telling the failure."""
        _close([self._channel], failure)


def _close(channels: list[Channel], failure: Failure | None) -> None:
    if failure is not None:
        for channel in channels:
            with suppress(ChannelClosedError):  # it sees the connection close
                channel.send(failure.as_message(), _FAREWELL_SECONDS)
            channel.finish()
        _linger(channels)
    for channel in channels:
        channel.close()


def _linger(channels: list[Channel]) -> None:
    """Wait for the other ends to close: a connection closed with unread data loses its last message."""
    deadline = time.monotonic() + _FAREWELL_SECONDS
    for channel in channels:
        with suppress(ChannelClosedError):
            while time.monotonic() < deadline:
                wait_for(channel, deadline - time.monotonic())
                while channel.receive() is not None:
                    continue
