# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's transfer to vLLM workers on the same device: its socket, and a weight that is larger than its bucket.

The socket is named after Ray's job id, which is unique in one cluster only: two drivers on a host, each with a Ray of
its own, would meet in one file, and a rollout would get the other job's weights. So the name gets what tells clusters
and users apart, in the sender and in the receiver.

By IPC verl sends a large weight on its own; through shared memory it has an assertion there. The sender shares the
weight's own bytes for that one message. The receiver needs nothing: verl's calls whatever function the message names,
with the receiver's device as seventh argument.
"""

import hashlib
import os
import socket
from collections.abc import Callable
from multiprocessing import shared_memory
from typing import Any

import torch
from verl.plugin.platform import get_platform

from verl_hw_core import upstream

SOCKET_ROW = "weight-socket-name"
ROW = "shared-memory-large-weight"

MODULE = "verl.workers.rollout.vllm_rollout.bucketed_weight_transfer"
"""verl's module; its package needs vLLM."""

_SHARES = "_verl_hw_shares_memory"
_SUFFIX = ".sock"


def socket_name(handle: str) -> str:
    """Return verl's ZMQ handle with a name that no other cluster or user on this host has.

    A cluster is known by its raylet, whose process id Ray gives to all its workers in ``RAY_RAYLET_PID`` and they to
    their children, vLLM's processes among them; the host's name tells containers apart that share a ``/tmp``. verl's
    is ``ipc://...-JOB-replica-R-rank-L.sock``; anything else is returned as it is.
    """
    if not (handle.startswith("ipc://") and handle.endswith(_SUFFIX)):
        return handle
    whose = f"{socket.gethostname()} {os.getuid()} {os.environ.get('RAY_RAYLET_PID', '')}"
    return f"{handle.removesuffix(_SUFFIX)}-{hashlib.sha256(whose.encode()).hexdigest()[:12]}{_SUFFIX}"


@upstream.replaces(SOCKET_ROW, f"{MODULE}:BucketedWeightSender.__init__")
def make_sender(own: Callable[..., None], sender: Any, zmq_handle: str, *args: Any, **kwargs: Any) -> None:
    """verl's, at a socket of this cluster's own."""
    own(sender, socket_name(zmq_handle), *args, **kwargs)


@upstream.replaces(SOCKET_ROW, f"{MODULE}:BucketedWeightReceiver.__init__")
def make_receiver(own: Callable[..., None], receiver: Any, zmq_handle: str, *args: Any, **kwargs: Any) -> None:
    """verl's, at a socket of this cluster's own."""
    own(receiver, socket_name(zmq_handle), *args, **kwargs)


@upstream.replaces(ROW, f"{MODULE}:BucketedWeightSender._init_buffer")
def init_buffer(own: Callable[[Any], None], sender: Any) -> None:
    """Make the bucket as verl does; afterwards ``use_shm`` stands only for the assertion, so it is taken back."""
    sender.use_shm = sender.use_shm or getattr(sender, _SHARES, False)
    own(sender)
    setattr(sender, _SHARES, sender.use_shm)
    sender.use_shm = False


@upstream.replaces(ROW, f"{MODULE}:BucketedWeightSender._direct_send_large_weight")
def send_large_weight(own: Callable[..., None], sender: Any, name: str, weight: torch.Tensor) -> None:
    """Send one weight on its own: by IPC as verl does, or through a shared memory of its size."""
    if not getattr(sender, _SHARES, False):
        own(sender, name, weight)
        return
    memory = shared_memory.SharedMemory(create=True, size=weight.nbytes)
    try:
        shared = torch.frombuffer(memory.buf, dtype=weight.dtype, count=weight.numel())
        shared.view(weight.shape).copy_(weight)
        del shared  # or the memory cannot be closed
        where = (get_platform().device_name, None)  # verl overwrites the ordinal, argument 6
        arguments = (memory.name, weight.dtype, tuple(weight.shape), weight.numel(), None, *where)
        entry = {"name": name, "shape": weight.shape, "dtype": weight.dtype, "offset": 0}
        entry["handle"] = (take_large_weight, arguments)
        sender.socket.send_pyobj({"bucket_meta": {name: entry}, "is_last": False})
        sender.socket.recv()
    finally:
        memory.close()
        memory.unlink()


def take_large_weight(
    memory: str, dtype: torch.dtype, shape: tuple[int, ...], count: int, _: None, device: str, ordinal: int
) -> torch.Tensor:
    """Copy a weight of ``count`` elements from the shared memory of this name to the device; runs in the receiver."""
    source = shared_memory.SharedMemory(name=memory)
    try:
        shared = torch.frombuffer(source.buf, dtype=dtype, count=count)
        target = torch.device(device, ordinal) if ordinal is not None else torch.device(device)
        weight = shared.to(target, copy=True).view(shape)
        get_platform().synchronize()
        del shared  # or the memory cannot be closed
    finally:
        source.close()
    return weight
