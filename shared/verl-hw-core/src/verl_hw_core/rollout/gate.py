# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The door that requests go through: closed by an abort, it keeps late ones waiting or turns them away."""

import asyncio


class Gate:
    """Open at first. Used from one event loop."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self._rejecting = False

    @property
    def is_open(self) -> bool:
        """Whether requests may pass."""
        return self._opened.is_set()

    def close(self, *, reject: bool) -> None:
        """Let no request pass until :meth:`open`; with ``reject``, turn them away instead of keeping them."""
        self._rejecting = reject
        if self.is_open or reject:
            waiting, self._opened = self._opened, asyncio.Event()
            waiting.set()  # who waits looks again, and is turned away

    def open(self) -> None:
        """Let requests pass, those that wait included."""
        self._rejecting = False
        self._opened.set()

    async def admitted(self) -> bool:
        """Wait until the request may pass; False turns it away."""
        while not self._opened.is_set():
            if self._rejecting:
                return False
            await self._opened.wait()
        return True
