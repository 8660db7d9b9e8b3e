# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Follow the ranks of one launch: which check they are at, who has answered, and when it has taken too long."""

import time
from collections.abc import Callable
from pathlib import Path

from verl_hw_tools.conformance import events
from verl_hw_tools.conformance.results import Finding, Status

# How long the others may take once one rank has left a check early: they may wait for a collective it never reached.
_LEAST_PATIENCE = 6.0
_PATIENCE = 0.25  # as a part of the deadline


class LaunchOverdueError(Exception):
    """A launch has to be ended: its ranks took too long."""


class Watcher:
    """The state of a launch, from its ranks' events.

    Attributes:
        findings: By check and rank.
        ready: Ranks that came as far as their first check.
        not_ready: Ranks that could not start, with the error.
        ended: Ranks that came to the end of their list.
    """

    def __init__(
        self,
        folder: Path,
        processes: int,
        *,
        deadline: float,
        start_seconds: float,
        on_start: Callable[[str], None],
    ) -> None:
        self.findings: dict[str, dict[int, Finding]] = {}
        self.ready: set[int] = set()
        self.not_ready: dict[int, str] = {}
        self.ended: set[int] = set()
        self._processes = processes
        self._deadline, self._start_seconds, self._on_start = deadline, start_seconds, on_start
        self._readers = [events.EventReader(folder, rank) for rank in range(processes)]
        self._begun = self._heard = time.monotonic()
        self._started: dict[str, float] = {}
        self._answered: dict[str, float] = {}

    def look(self) -> None:
        """Read what is new.

        Raises:
            LaunchOverdueError: The ranks took too long to start or to answer.
        """
        for rank, reader in enumerate(self._readers):
            for event in reader.read():
                self._heard = time.monotonic()
                self._take(rank, event)
        self._check_time()

    @property
    def current(self) -> str | None:
        """The first check that has begun on some rank and that not every rank has answered."""
        for check_id in self._started:
            if len(self.findings.get(check_id, {})) < self._processes:
                return check_id
        return None

    def _take(self, rank: int, event: dict[str, str]) -> None:
        kind = event["event"]
        if kind == events.READY:
            self.ready.add(rank)
        elif kind == events.NOT_READY:
            self.not_ready[rank] = event["error"]
        elif kind == events.END:
            self.ended.add(rank)
        elif kind == events.START and event["id"] not in self._started:
            self._started[event["id"]] = time.monotonic()
            self._on_start(event["id"])
        elif kind == events.RESULT:
            finding = Finding(
                status=Status(event["status"]),
                observed=event["observed"],
                expected=event["expected"],
                seconds=float(event["seconds"]),
            )
            self.findings.setdefault(event["id"], {})[rank] = finding
            if finding.status is not Status.OK:
                self._answered.setdefault(event["id"], time.monotonic())

    def _check_time(self) -> None:
        now = time.monotonic()
        if len(self.ready) < self._processes:
            if now - self._begun > self._start_seconds:
                late = sorted(set(range(self._processes)) - self.ready)
                raise LaunchOverdueError(f"ranks {late} did not start within {self._start_seconds:.0f} s")
            return
        current = self.current
        if current is None:
            # Between two checks, or closing.
            if now - self._heard > self._deadline:
                raise LaunchOverdueError(f"no sign of life within {self._deadline:.0f} s")
            return
        taken = now - self._started[current]
        if taken > self._deadline:
            raise LaunchOverdueError(f"no answer within {self._deadline:.0f} s")
        failed_at = self._answered.get(current)
        if failed_at is not None and now - failed_at > max(_LEAST_PATIENCE, self._deadline * _PATIENCE):
            raise LaunchOverdueError("a rank left the check early and the others waited for it")
