# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Runs management tools at the same time under one deadline and leaves nothing of them behind."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

_POLL_SECONDS = 0.005
_REAP_SECONDS = 0.2
_KEPT_OUTPUT_BYTES = 4096
_READ_BYTES = 65536
_READS_PER_POLL = 16


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool: absolute path of the executable and its arguments."""

    path: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolResult:
    """What a call came to.

    Attributes:
        answered: Whether the tool exited with status 0 in time. If not, nothing is known.
        why: How it ended, for people.
        seconds: How long it ran.
    """

    answered: bool
    why: str
    seconds: float = 0.0


def run_all(calls: Sequence[ToolCall], end: float, environment: Mapping[str, str]) -> dict[ToolCall, ToolResult]:
    """Runs all calls at the same time until each has exited or the deadline has come.

    The deadline ``end`` is a value of ``time.monotonic()``; ``environment`` is the tools' whole environment.

    Returns:
        One result for each call. A tool that cannot be started, fails or is late has not answered; nothing is raised.
    """
    results: dict[ToolCall, ToolResult] = {}
    running: dict[ToolCall, _RunningTool] = {}
    try:
        for call in dict.fromkeys(calls):
            try:
                running[call] = _RunningTool(call, environment)
            except (OSError, ValueError) as error:
                results[call] = ToolResult(False, f"{call.path} could not be started: {error}")
        while len(results) < len(running.keys() | results.keys()):
            for call, tool in running.items():
                if call not in results and (result := tool.poll()) is not None:
                    results[call] = result
            if time.monotonic() >= end:
                break
            time.sleep(_POLL_SECONDS)
    finally:
        _end_all(list(running.values()))
    for call, tool in running.items():
        results.setdefault(call, tool.late())
    return results


class _RunningTool:
    """One started tool, the leader of its own session and process group."""

    def __init__(self, call: ToolCall, environment: Mapping[str, str]) -> None:
        self._call = call
        self._started = time.monotonic()
        self._output = b""
        self._process = subprocess.Popen(
            [call.path, *call.args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=dict(environment),
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - for the type checker: stdout=PIPE
        self._stdout = self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)

    def poll(self) -> ToolResult | None:
        """Reads what is there and returns the result if the tool has exited. Does not wait, does not reap."""
        try:
            # WNOWAIT leaves the process in place, so that its group id cannot be reused before the group is killed.
            status = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return ToolResult(False, f"{self._name}: exit status lost, another part of this process collected it")
        self._read()
        if status is None:
            return None
        seconds = time.monotonic() - self._started
        if status.si_code == os.CLD_EXITED:
            how = f"exited {status.si_status}"
        else:
            how = f"was ended by signal {status.si_status}"
        answered = status.si_code == os.CLD_EXITED and status.si_status == 0
        return ToolResult(answered, f"{self._name} {how} after {seconds:.2f} s{self._quote()}", seconds)

    def late(self) -> ToolResult:
        """Returns the result of a tool that was still running at the deadline."""
        seconds = time.monotonic() - self._started
        why = f"{self._name} gave no answer in {seconds:.1f} s and was ended{self._quote()}"
        return ToolResult(False, why, seconds)

    def kill(self) -> None:
        """Kills the whole group, the leader's own children included."""
        with suppress(ProcessLookupError, PermissionError):  # all gone, or a setuid tool that is not ours to kill
            os.killpg(self._process.pid, signal.SIGKILL)

    def reap(self, end: float) -> None:
        """Collects the killed processes, so that no zombie stays; waits until ``end`` at most."""
        self._stdout.close()
        try:
            self._process.wait(timeout=max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            # Stuck in the driver (uninterruptible sleep): collected whenever the kernel lets it go.
            threading.Thread(target=self._process.wait, name="verl-hw-reaper", daemon=True).start()
            return
        self._reap_adopted(end)

    def _reap_adopted(self, end: float) -> None:
        # Where this process is the init of a container, the tool's orphans have become its children.
        with suppress(ChildProcessError):  # the normal end: no child of ours is left in the group
            while True:
                pid, _ = os.waitpid(-self._process.pid, os.WNOHANG)
                if pid == 0:
                    if time.monotonic() >= end:
                        return
                    time.sleep(_POLL_SECONDS)

    def _read(self) -> None:
        # Bounded on both sides: little is kept, and a tool that never stops printing does not keep us here.
        with suppress(BlockingIOError):
            for _ in range(_READS_PER_POLL):
                chunk = os.read(self._stdout.fileno(), _READ_BYTES)
                if not chunk:
                    return
                self._output += chunk[: _KEPT_OUTPUT_BYTES - len(self._output)]

    @property
    def _name(self) -> str:
        return " ".join((self._call.path, *self._call.args))

    def _quote(self) -> str:
        lines = self._output.decode("utf-8", "replace").splitlines()
        line = next((line.strip() for line in lines if line.strip()), "")
        shown = "".join(character for character in line if character.isprintable())[:120]
        return f", saying {shown!r}" if shown else ""


def _end_all(tools: Sequence[_RunningTool]) -> None:
    for tool in tools:
        tool.kill()
    end = time.monotonic() + _REAP_SECONDS
    for tool in tools:
        tool.reap(end)
