# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Weight sync: who is let in, what a stranger can do, and how ranks are given out."""

import json
import pickle
import re
import socket
import threading
import time

import pytest
from machine_speed import scaled

from verl_hw_core.errors import WeightTransferError
from verl_hw_core.weight_sync import topology
from verl_hw_core.weight_sync.channel import Channel, ChannelClosedError, Failure, FailureFoundError, join, wait_for
from verl_hw_core.weight_sync.control import Gathering, Hub, Spoke, listen
from verl_hw_core.weight_sync.topology import Endpoint, WorkerMetadata

HOST = "127.0.0.1"
TERMS = {"bucket_size": 1}


def gather(world_size: int, seconds: float, act) -> Gathering:
    """Gather while ``act(port)`` runs in another thread."""
    with listen(HOST) as listener:
        gathering = Gathering(listener, "secret", world_size, TERMS)
        other = threading.Thread(target=act, args=(listener.getsockname()[1],))
        other.start()
        try:
            gathering.run(time.monotonic() + scaled(seconds))
        finally:
            other.join()
    return gathering


def test_a_rank_with_the_token_joins_and_both_can_talk():
    spokes = []
    deadline = time.monotonic() + scaled(20)
    gathering = gather(2, 20, lambda port: spokes.append(Spoke.join(HOST, port, "secret", 1, TERMS, deadline)))
    hub, (spoke,) = Hub(gathering.joined), spokes
    hub.tell({"bucket": 0})
    assert spoke.await_next(0) == {"bucket": 0}
    spoke.tell({"at": 0})
    spoke.tell({"taken": 0})
    while not hub.all_took(0):
        hub.hear()
    assert hub.laggards(1) == [1]
    closing = threading.Thread(target=hub.close, args=(Failure("planted", rank=1, bucket=4, tensor="w"),))
    closing.start()
    # The transfer thread took the failure in; the thread that waits for another bucket must hear of it as well.
    for ask in (lambda: spoke.await_next(1), spoke.hear):
        with pytest.raises(FailureFoundError) as caught:
            ask()
        assert caught.value.failure == Failure("planted", rank=1, bucket=4, tensor="w")
    spoke.close()
    closing.join()


@pytest.mark.parametrize(
    "greeting",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 10,
        (5).to_bytes(4, "big") + b"[1,2]",
        (4).to_bytes(4, "big") + b"nope",
        (90_000).to_bytes(4, "big") + b"[" * 90_000,
        (2).to_bytes(4, "big") + b"{}",
        pickle.dumps({"rank": 1}),
    ],
)
def test_a_stranger_is_turned_away_and_the_rank_is_named(greeting):
    def visit(port: int) -> None:
        with socket.create_connection((HOST, port)) as stranger:
            stranger.sendall(greeting)
            time.sleep(scaled(0.6))

    with pytest.raises(FailureFoundError) as caught:
        gather(2, 0.5, visit)
    assert caught.value.failure.rank == 1
    assert "missing ranks: [1]" in caught.value.failure.reason


def test_a_wrong_token_is_refused_and_counted():
    def visit(port: int) -> None:
        with pytest.raises(ChannelClosedError):
            join(HOST, port, "guess", 1, TERMS, time.monotonic() + scaled(5))

    with pytest.raises(FailureFoundError, match="1 connections did not know the token"):
        gather(2, 1.0, visit)


def test_a_listener_that_does_not_know_the_token_is_refused():
    with listen(HOST) as listener:

        def answer() -> None:
            wait_for(listener, scaled(5))
            channel = Channel(listener.accept()[0])
            channel.send({"nonce": "0"}, scaled(5))
            wait_for(channel, scaled(5))
            channel.send({"proof": "0"}, scaled(5))
            wait_for(channel, scaled(5))
            channel.close()

        other = threading.Thread(target=answer)
        other.start()
        with pytest.raises(ChannelClosedError, match="does not know the token"):
            join(HOST, listener.getsockname()[1], "secret", 1, TERMS, time.monotonic() + scaled(5))
        other.join()


def test_other_terms_are_told_to_both():
    told = []

    def visit(port: int) -> None:
        try:
            Spoke.join(HOST, port, "secret", 1, {"bucket_size": 2}, time.monotonic() + scaled(5))
        except FailureFoundError as found:
            told.append(found.failure.reason)

    with pytest.raises(
        FailureFoundError, match=re.escape("'bucket_size': 2} differ from the sender's {'bucket_size': 1}")
    ):
        gather(2, 5, visit)
    assert "'bucket_size': 2} differ from the sender's {'bucket_size': 1}" in told[0]


def test_long_messages_and_a_reader_that_does_not_read():
    with listen(HOST) as listener:
        ours = Channel(socket.create_connection(listener.getsockname()))
        wait_for(listener, scaled(5))
        theirs = Channel(listener.accept()[0])
    message = {"pieces": ["x" * 100] * 100_000}
    sender = threading.Thread(target=ours.send, args=(message, scaled(60)))
    sender.start()
    while (found := theirs.receive()) is None:
        wait_for(theirs, scaled(5))
    sender.join()
    assert found == message
    with pytest.raises(ChannelClosedError, match=r"took no message for 0\.2 s"):
        ours.send(message, 0.2)


class TestTopology:
    ENDPOINT = Endpoint(HOST, 1, "t0ken")

    def worker(self, node="a", **given) -> WorkerMetadata:
        return WorkerMetadata(node=node, who="pid 1", **given)

    def sender(self, **given) -> WorkerMetadata:
        return self.worker(endpoint=self.ENDPOINT, **given)

    def test_one_sender_others_drain(self):
        trainer, rollout = topology.build(3, 2, [self.sender(), *[self.worker()] * 4])
        assert trainer["rank"] == [0, -1, -1]
        assert rollout["rank"] == [1, 2]
        assert set(trainer["world_size"]) == set(rollout["world_size"]) == {3}
        assert all(len(values) == 3 for values in trainer.values())
        assert all(len(values) == 2 for values in rollout.values())

    def test_relays_are_of_the_senders_node(self):
        others = [self.worker("a"), self.worker("b"), self.worker("a"), self.worker("a")]
        trainer, rollout = topology.build(4, 1, [self.sender(multi_sender=True), *others])
        assert trainer["rank"] == [0, 1, -1, 2]
        assert rollout["rank"] == [3]

    def test_a_group_is_kept_only_if_all_have_it_with_these_ranks(self):
        old = {"group": "g", "world_size": 3}
        members = [self.sender(rank=0, **old), self.worker(rank=1, **old), self.worker(rank=2, **old)]
        assert topology.build(1, 2, members)[0]["group"] == ["g"]
        for changed in ([*members[:2], self.worker()], [members[0], members[2], members[1]]):
            assert topology.build(1, 2, changed)[0]["group"] != ["g"]
        assert topology.build(1, 1, members[:2])[0]["group"] != ["g"]

    def test_the_first_trainer_must_listen(self):
        with pytest.raises(ValueError, match="is_master=True"):
            topology.build(1, 1, [self.worker(), self.worker()])

    def test_the_token_is_not_shown(self):
        assert "t0ken" not in repr(self.sender())


def test_the_error_travels_between_processes_and_keeps_its_facts():
    error = Failure("planted", rank=1, bucket=3, tensor="w").error(["sender, pid 1", "rollout worker 0, pid 2"])
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert isinstance(again, WeightTransferError)
    assert (again.rank, again.bucket, again.tensor) == (1, 3, "w")
    assert str(again) == "weight sync failed at rank 1 (rollout worker 0, pid 2), bucket 3, tensor w: planted"


@pytest.mark.parametrize("fields", [None, [], {"rank": "1", "bucket": True, "tensor": 3}, {"reason": {"a": 1}}])
def test_a_malformed_failure_of_a_peer_is_still_a_failure(fields):
    failure = Failure.from_message(json.loads(json.dumps(fields)))
    assert (failure.rank, failure.bucket, failure.tensor) == (None, None, None)
    assert "unknown rank" in str(failure.error([]))
