# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Where buckets live, and one thread for a group's collectives, so that packing and loading go on meanwhile."""

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from verl.plugin.platform import get_platform

HOST_BACKEND = "gloo"
"""The backend that moves host memory: buckets are on the host, whatever the platform's device."""

T = TypeVar("T")
_LEAVE_SECONDS = 5.0

logger = logging.getLogger("verl_hw_core")


@dataclass(frozen=True)
class Place:
    """A device for buckets.

    Attributes:
        device: Where buckets are.
        platform: verl's platform, None where there is no accelerator to wait for.
        ordinal: Its current device when the place was made.
    """

    device: torch.device
    platform: Any = None
    ordinal: int = 0

    @classmethod
    def here(cls, backend: str) -> "Place":
        """Return the place of the calling thread's current device, or of the host for gloo."""
        platform = get_platform()
        if backend != HOST_BACKEND:
            ordinal = platform.current_device()
            return cls(torch.device(platform.device_name, ordinal), platform, ordinal)
        if platform.is_available():
            return cls(torch.device("cpu"), platform, platform.current_device())
        return cls(torch.device("cpu"))

    def enter_thread(self) -> None:
        """Make the device current in this thread: a new thread starts on device 0, or on none."""
        if self.platform is not None:
            self.platform.set_device(self.ordinal)

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.platform is not None:
            self.platform.synchronize()

    def bucket(self, size: int) -> torch.Tensor:
        """Return a new bucket: uint8 of shape ``[size]``, not initialised."""
        return torch.empty(size, dtype=torch.uint8, device=self.device)

    def release(self) -> None:
        """Give the memory of dropped buckets back to the device."""
        if self.platform is not None:
            self.platform.empty_cache()


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
    """The data's way: broadcasts from rank 0 in one group.

    In host memory one is begun while the one before is still on its way, so that nothing waits for this process to
    hear that it has ended; a second thread hears it. On a device they are begun one by one, since only the whole device
    can be waited for.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._backend: Any = None
        self._not_begun = ""  # why; the error itself would hold its frames, and these the buckets
        self.thread = TransferThread(place)
        self._ends = TransferThread(place) if place.device.type == "cpu" else None

    def open(self, make: Callable[[], Any]) -> "Future[None]":
        """Make the backend and send one byte through it: many libraries connect at the first collective only."""
        return self.thread.submit(lambda: self._open(make))

    def _open(self, make: Callable[[], Any]) -> None:
        self._backend = make()
        self._end(self._begin(self._place.bucket(1)))

    def submit(self, begin: Callable[[], torch.Tensor | None], end: Callable[[], T]) -> "Future[T]":
        """Broadcast rank 0's content, after the broadcasts before it.

        When one could not be begun, none after it is: a library matches them by their order, so the next one would take
        the bytes of the one left out, and gloo ends the process where these are more.

        Args:
            begin: Called in a thread of the group when it is this one's turn; returns the content, None for nothing.
            end: Called in a thread of the group when the device is done with the content.

        Returns:
            What ``end`` returns.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()

        def conclude(work: Any, backend: Any) -> None:
            self._end(work)
            future.set_result(end())
            del backend  # until here: who drops it last waits for its threads, and that must not be :meth:`close`

        def start() -> None:
            work, backend = self._begin_next(begin), self._backend
            if self._ends is None:
                conclude(work, backend)
            else:
                _tell_failure(self._ends.submit(partial(conclude, work, backend)), future)

        _tell_failure(self.thread.submit(start), future)
        return future

    def _begin_next(self, begin: Callable[[], torch.Tensor | None]) -> Any:
        if self._not_begun:
            raise RuntimeError(f"an earlier broadcast of this group was not begun: {self._not_begun}")
        try:
            return self._begin(begin())
        except BaseException as error:
            self._not_begun = f"{type(error).__name__}: {error}"
            raise

    def _begin(self, content: torch.Tensor | None) -> Any:
        if content is None or content.numel() == 0:
            return None
        options = dist.BroadcastOptions()
        options.rootRank = 0
        options.rootTensor = 0
        return self._backend.broadcast([content], options)

    def _end(self, work: Any) -> None:
        if work is not None:
            work.wait()
            self._place.synchronize()

    def close(self, *, broken: bool) -> None:
        """Leave the group. A broken one is aborted, so that a call that still hangs in it comes back."""
        backend, self._backend = self._backend, None
        self.thread.stop()
        if self._ends is not None:
            self._ends.stop()
        if backend is None:
            return
        leave = threading.Thread(target=_leave, args=(backend, "abort" if broken else "shutdown"), daemon=True)
        leave.start()
        leave.join(_LEAVE_SECONDS)  # a library that hangs may hang here too


def _tell_failure(step: "Future[Any]", whole: "Future[Any]") -> None:
    def tell(done: "Future[Any]") -> None:
        if (error := done.exception()) is not None:
            whole.set_exception(error)

    step.add_done_callback(tell)


def _leave(backend: Any, name: str) -> None:
    try:
        getattr(backend, name)()
    except Exception as error:  # noqa: BLE001 - not every backend has it, and nothing depends on it
        logger.debug("weight sync: %s of the process group: %s", name, error)
