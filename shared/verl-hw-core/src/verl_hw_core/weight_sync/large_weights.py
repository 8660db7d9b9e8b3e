# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's transfer to rollout workers on the same device, for a weight that is larger than its bucket.

By IPC verl sends such a weight on its own; through shared memory it has an assertion there. A row of the ledger lets
the sender share the weight's own bytes for that one message. The receiver needs nothing: verl's calls whatever function
the message names, with the receiver's device as seventh argument.
"""

from collections.abc import Callable
from multiprocessing import shared_memory
from typing import Any

import torch
from verl.plugin.platform import get_platform

from verl_hw_core import upstream

ROW = "shared-memory-large-weight"
"""Ledger row of the replacements."""

MODULE = "verl.workers.rollout.vllm_rollout.bucketed_weight_transfer"
"""verl's module; its package needs vLLM."""

_SHARES = "_verl_hw_shares_memory"


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
    """Copy a shared weight to the device; runs in the receiver.

    Args:
        memory: Name of the shared memory.
        dtype: The weight's dtype.
        shape: Its shape.
        count: Its elements.
        _: Unused.
        device: torch device type.
        ordinal: The receiver's device.
    """
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
