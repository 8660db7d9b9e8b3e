# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Threads that follow the doctor's child processes; an interrupt ends the children first."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

Answer = TypeVar("Answer")

_MOST_AT_ONCE = 8


class Followers:
    """Runs functions that follow one child process each.

    Attributes:
        stop: Set when nobody waits any more; the functions then end their children.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=_MOST_AT_ONCE, thread_name_prefix="verl-hw-doctor")

    def __enter__(self) -> "Followers":
        return self

    def start(self, function: Callable[[], Answer]) -> "Future[Answer]":
        """Run a function in a thread."""
        return self._pool.submit(function)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        self._pool.shutdown(wait=True)
