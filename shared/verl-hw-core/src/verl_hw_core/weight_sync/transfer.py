# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""One thread for a group's collectives, so that packing and loading go on meanwhile."""

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import torch
import torch.distributed as dist

from verl_hw_core.weight_sync.place import Place

_LEAVE_SECONDS = 5.0

logger = logging.getLogger("verl_hw_core")


class TransferThread:
    """Runs calls one after the other in a thread that has its device set.

    A daemon, not an executor's thread: one that hangs in a vendor's library must not keep the process from ending.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="weight-sync", daemon=True).start()

    def submit(self, call: Callable[[], Any]) -> "Future[Any]":
        """Run ``call`` in the thread, after those before it."""
        future: Future[Any] = Future()
        self._calls.put((future, call))
        return future

    def stop(self) -> None:
        """Let the thread end when it has done what it was given."""
        self._calls.put(None)

    def _run(self) -> None:
        entered = False
        while (item := self._calls.get()) is not None:
            future, call = item
            future.set_running_or_notify_cancel()
            try:
                if not entered:
                    self._place.enter_thread()
                    entered = True
                result = call()
            except BaseException as error:  # noqa: BLE001 - whoever waits for the future gets it
                future.set_exception(error)
            else:
                future.set_result(result)
            del item, future, call  # an idle thread must not hold a bucket


class Broadcaster:
    """The data's way: broadcasts from rank 0 in one group."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._backend: Any = None
        self.thread = TransferThread(place)

    def open(self, make: Callable[[], Any]) -> "Future[None]":
        """Make the backend and send one byte through it: many libraries connect at the first collective only."""
        return self.thread.submit(lambda: self._open(make))

    def _open(self, make: Callable[[], Any]) -> None:
        self._backend = make()
        self.broadcast(self._place.bucket(1))

    def broadcast(self, content: torch.Tensor) -> None:
        """Broadcast rank 0's content; call it in :attr:`thread`. Returns when the device is done with it."""
        options = dist.BroadcastOptions()
        options.rootRank = 0
        options.rootTensor = 0
        self._backend.broadcast([content], options).wait()
        self._place.synchronize()

    def close(self, *, broken: bool) -> None:
        """Leave the group. A broken one is aborted, so that a call that still hangs in it comes back."""
        backend, self._backend = self._backend, None
        self.thread.stop()
        if backend is None:
            return
        leave = threading.Thread(target=_leave, args=(backend, "abort" if broken else "shutdown"), daemon=True)
        leave.start()
        leave.join(_LEAVE_SECONDS)  # a library that hangs may hang here too


def _leave(backend: Any, name: str) -> None:
    try:
        getattr(backend, name)()
    except Exception as error:  # noqa: BLE001 - not every backend has it, and nothing depends on it
        logger.debug("weight sync: %s of the process group: %s", name, error)
