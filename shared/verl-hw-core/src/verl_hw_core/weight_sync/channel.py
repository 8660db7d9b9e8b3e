# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""JSON messages over a TCP connection whose two ends have proved to each other that they know a token.

One of them is a failure, as all ranks tell it: which rank, which bucket, which tensor, and why.
"""

import hashlib
import hmac
import json
import secrets
import select
import socket
import struct
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

from verl_hw_core.errors import WeightTransferError

_HEADER = struct.Struct("!I")
_LONGEST_MESSAGE = 64 << 20  # a bucket of 100,000 tensors needs about 10 MiB
_LONGEST_GREETING = 4096  # what a stranger may make us read
_LONGEST_TEXT = 2000  # of a failure that a peer told
_CHUNK = 1 << 16


class ChannelClosedError(Exception):
    """The other end closed the connection, or sent what is not a message."""


class Channel:
    """One connection. Any thread may send; only one at a time may receive."""

    def __init__(self, connection: socket.socket, longest: int = _LONGEST_MESSAGE) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self._longest = longest
        self._received = bytearray()
        self._sending = threading.Lock()

    def fileno(self) -> int:
        """File descriptor, for select."""
        return self._socket.fileno()

    def trust(self) -> None:
        """Allow messages of full length from now on."""
        self._longest = _LONGEST_MESSAGE

    def send(self, message: dict[str, Any], timeout: float) -> None:
        """Send a message.

        Raises:
            ChannelClosedError: The other end is gone, or took nothing for ``timeout`` seconds.
        """
        body = json.dumps(message, separators=(",", ":")).encode()
        rest = memoryview(_HEADER.pack(len(body)) + body)
        deadline = time.monotonic() + timeout
        with self._sending:
            while rest:
                try:
                    rest = rest[self._socket.send(rest) :]
                except BlockingIOError:
                    left = deadline - time.monotonic()
                    if left <= 0 or not wait_for(self, left, writable=True):
                        raise ChannelClosedError(f"took no message for {timeout:g} s") from None
                except OSError as error:
                    raise ChannelClosedError(f"its connection is gone ({error})") from error

    def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None when none has come in; does not wait.

        Raises:
            ChannelClosedError: The connection is closed and every message was returned before.
        """
        closed = self._read_what_is_there()
        message = self._take_message()
        if closed and message is None:
            raise ChannelClosedError(closed)
        return message

    def _read_what_is_there(self) -> str:
        try:
            while chunk := self._socket.recv(_CHUNK):
                self._received += chunk
                if len(self._received) > self._longest + _CHUNK:
                    break
        except BlockingIOError:
            return ""
        except OSError as error:
            return f"its connection broke ({error})"
        return "" if chunk else "it closed the connection"

    def _take_message(self) -> dict[str, Any] | None:
        if len(self._received) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(self._received)
        if length > self._longest:
            raise ChannelClosedError(f"it announced a message of {length} bytes")
        end = _HEADER.size + length
        if len(self._received) < end:
            return None
        body = bytes(self._received[_HEADER.size : end])
        del self._received[:end]
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ChannelClosedError(f"it sent no JSON ({error})") from error
        if not isinstance(message, dict):
            raise ChannelClosedError("it sent JSON that is no message")
        return message

    def finish(self) -> None:
        """Say that nothing more comes; what was sent still arrives."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the other end was faster

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def wait_for(source: Any, seconds: float, *, writable: bool = False) -> bool:
    """Wait until a channel or socket can be read or written, at most ``seconds``; whether it can."""
    poll = select.poll()
    poll.register(source.fileno(), select.POLLOUT if writable else select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


def greet_stranger(connection: socket.socket) -> tuple[Channel, str]:
    """Open the listening end's side of a greeting and return the channel with the nonce that was sent."""
    channel = Channel(connection, longest=_LONGEST_GREETING)
    nonce = secrets.token_hex(16)
    channel.send({"nonce": nonce}, timeout=1.0)
    return channel, nonce


def check_answer(token: str, nonce: str, answer: dict[str, Any]) -> dict[str, Any] | None:
    """Return the reply that proves our own knowledge of the token, or None when the answer does not prove theirs."""
    rank, theirs, proof = answer.get("rank"), answer.get("nonce"), answer.get("proof")
    if type(rank) is not int or not isinstance(theirs, str) or not isinstance(proof, str):
        return None
    if not _equal(proof, _proof(token, "joining", nonce, rank)):
        return None
    return {"proof": _proof(token, "listening", theirs, rank)}


def join(host: str, port: int, token: str, rank: int, hello: dict[str, Any], deadline: float) -> Channel:
    """Connect to the listening end and prove the token, which is not sent, in both directions.

    ``hello`` is more to say with the answer, ``deadline`` the ``time.monotonic()`` by which it must be done.

    Raises:
        ChannelClosedError: Nobody listens, or the other end does not know the token.
    """
    try:
        connection = socket.create_connection((host, port), timeout=max(0.1, deadline - time.monotonic()))
    except OSError as error:
        raise ChannelClosedError(
            f"nobody listens at {host} port {port} ({error}): it ended, or gave up waiting (rendezvous_timeout)"
        ) from error
    channel = Channel(connection)
    try:
        nonce = str(_next(channel, deadline).get("nonce"))
        own = secrets.token_hex(16)
        channel.send({**hello, "rank": rank, "nonce": own, "proof": _proof(token, "joining", nonce, rank)}, 5.0)
        welcome = _next(channel, deadline)
        if "error" in welcome:
            said = welcome["error"]
            raise ChannelClosedError(str(said.get("reason") if isinstance(said, dict) else said))
        if not _equal(str(welcome.get("proof")), _proof(token, "listening", own, rank)):
            raise ChannelClosedError(f"who listens at {host} port {port} does not know the token")
    except BaseException:
        channel.close()
        raise
    return channel


def _next(channel: Channel, deadline: float) -> dict[str, Any]:
    while True:
        if (message := channel.receive()) is not None:
            return message
        left = deadline - time.monotonic()
        if left <= 0:
            raise ChannelClosedError("no answer in time")
        wait_for(channel, left)


def _equal(first: str, second: str) -> bool:
    return hmac.compare_digest(first.encode(errors="replace"), second.encode(errors="replace"))


def _proof(token: str, role: str, nonce: str, rank: int) -> str:
    said = f"{role}|{nonce}|{rank}".encode(errors="replace")  # a stranger may send anything as nonce
    return hmac.new(token.encode(), said, hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Failure:
    """What went wrong, in a form that travels as JSON.

    Attributes:
        reason: What was wanted and what was found.
        rank: Rank in the weight-sync group that failed, None when unknown.
        bucket: Number of the bucket, counted from 0; None before the first one.
        tensor: Name of the tensor, or of the first and last one of the bucket.
    """

    reason: str
    rank: int | None = None
    bucket: int | None = None
    tensor: str | None = None

    def error(self, roster: list[str]) -> WeightTransferError:
        """Return the exception that every rank raises; ``roster`` says who each rank is."""
        if self.rank is not None and 0 <= self.rank < len(roster):
            who = f"rank {self.rank} ({roster[self.rank]})"
        else:
            who = "an unknown rank"
        where = "before the first bucket" if self.bucket is None else f"bucket {self.bucket}"
        tensor = f", tensor {self.tensor}" if self.tensor else ""
        return WeightTransferError(
            f"weight sync failed at {who}, {where}{tensor}: {self.reason}",
            rank=self.rank,
            bucket=self.bucket,
            tensor=self.tensor,
        )

    def as_message(self) -> dict[str, Any]:
        """Return the JSON object that peers get."""
        return {"error": asdict(self)}

    @classmethod
    def from_message(cls, fields: Any) -> "Failure":
        """Read what :meth:`as_message` wrote; anything malformed becomes unknown."""
        found = fields if isinstance(fields, dict) else {}
        numbers = {name: found.get(name) if type(found.get(name)) is int else None for name in ("rank", "bucket")}
        tensor = found.get("tensor")
        return cls(
            reason=str(found.get("reason", "no reason given"))[:_LONGEST_TEXT],
            tensor=tensor[:_LONGEST_TEXT] if isinstance(tensor, str) else None,
            **numbers,
        )


class FailureFoundError(Exception):
    """Carries a :class:`Failure` to where the engine tells all ranks of it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure
