# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""pytest plugin: deadlines follow the machine's speed, and a session ends within its budget.

With ``--time-budget`` slow tests are left out as :mod:`time_budget` plans; one that is reached when the time is over
all the same, since the machine became slower meanwhile, is skipped. What was not run is said before pytest's last line.
"""

import os
import time
from collections.abc import Generator
from typing import Any

import machine_speed
import pytest
import time_budget

# When the budget ends, by the machine's monotonic clock, for the worker processes too.
_END = "VERL_HW_TESTS_END"
_LEFT_OUT = "left_out"
_TOO_LATE = "the time budget is over"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--time-budget`` and ``--shard``."""
    group = parser.getgroup("general")
    group.addoption(
        "--time-budget", type=float, metavar="SECONDS", help="leave out slow tests, as far as the session needs it"
    )
    group.addoption("--shard", metavar="K/N", help="the K-th of N parts of the session, which take about equally long")


def pytest_configure(config: pytest.Config) -> None:
    """Measure the machine, once a session, and begin to count."""
    try:
        machine_speed.measure_once()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(_Session(config), "verl-hw-session")


def pytest_report_header() -> str:
    """Say how slow the machine is."""
    return f"machine speed: {machine_speed.factor():.2f} times the time of a quiet machine"


class _Session:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self.lines: list[str] = []
        self.budget: float | None = config.getoption("--time-budget")
        self.end = float("inf")
        if self.budget is not None:
            # Read once: a test in this process may begin a session of its own.
            self.end = time.monotonic() + self.budget if self.worker is None else float(os.environ[_END])
            os.environ[_END] = str(self.end)

    @pytest.hookimpl(trylast=True)  # after -m and -k
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        costs = time_budget.Costs.read()
        if shard := self.config.getoption("--shard"):
            self._keep(items, time_budget.shard(items, costs, *map(int, shard.split("/"))))
        self._scale_timeouts(items)
        plan = time_budget.plan(
            items,
            costs,
            factor=machine_speed.factor(),
            workers=self._workers(),
            budget=self.budget,
        )
        if plan.left_out:
            self.lines = [
                f"left out, since this machine takes {machine_speed.factor():.1f} times as long as a quiet one and all "
                f"would take {plan.wanted / 60:.0f} minutes, of {(self.budget or 0) / 60:.0f}:",
                *(f"  {one}" for one in plan.left_out),
            ]
        if self.budget is not None and plan.seconds > self.budget:
            self.lines.append(f"the tests that are left are expected to take {plan.seconds / 60:.0f} minutes")
        if self.budget is not None or self.worker is not None:
            self._keep(items, plan.kept)

    def _keep(self, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
        chosen = set(map(id, kept))
        if gone := [item for item in items if id(item) not in chosen]:
            self.config.hook.pytest_deselected(items=gone)
        items[:] = kept

    def _scale_timeouts(self, items: list[pytest.Item]) -> None:
        by_hand = self.config.getoption("timeout", None) is not None
        for item in items:
            mark = item.get_closest_marker("timeout")
            if mark is None and (by_hand or not self.config.getini("timeout")):
                continue
            named = dict(mark.kwargs) if mark else {}
            first, *others = (mark.args if mark else ()) or (named.pop("timeout", self.config.getini("timeout")),)
            item.add_marker(pytest.mark.timeout(machine_speed.scaled(float(first)), *others, **named), append=False)

    def _workers(self) -> int:
        if self.worker is not None:
            return int(self.worker["workercount"])
        return int(self.config.getoption("numprocesses", None) or 1)  # what --collect-only would be without itself

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if time_budget.is_slow(item) and time.monotonic() > self.end:
            self.lines.append(f"left out, {_TOO_LATE}: {item.nodeid}")
            pytest.skip(_TOO_LATE)

    def pytest_sessionfinish(self) -> None:
        if self.worker is not None:
            self.config.workeroutput[_LEFT_OUT] = self.lines  # type: ignore[attr-defined]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.lines += [line for line in getattr(node, "workeroutput", {}).get(_LEFT_OUT, []) if line not in self.lines]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, Any, Any]:
        result = yield
        for line in self.lines:
            terminalreporter.write_line(line)
        return result
