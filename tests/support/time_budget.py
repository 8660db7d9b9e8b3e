# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What is left out where a session would take longer than it may, and in which order the rest is run.

Costs are what ``scripts/write_test_costs.py`` measured, in seconds of a quiet machine. They are kept by the name of a
file and of a test function, not by folder, so that files can move.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

COSTS_FILE = Path(__file__).with_name("test_costs.json")
# A slow test of a file that nobody has measured yet.
UNKNOWN_SLOW_SECONDS = 20.0
LEAST_PRIORITY = 99  # of a slow test without the mark "ci": it is there since somebody asked for all


class Item(Protocol):
    """What is asked of a pytest item."""

    nodeid: str

    def get_closest_marker(self, name: str) -> Any:
        """Return the nearest mark of a name, or None."""


@dataclass(frozen=True)
class Costs:
    """Seconds of a quiet machine.

    Attributes:
        fast: A test that is neither slow nor named.
        speedup: Sum of the tests' times over the time of the whole session, with two workers.
        named: By ``file.py::function``, what one case takes.
    """

    fast: float
    speedup: float
    named: dict[str, float]

    @classmethod
    def read(cls, path: Path = COSTS_FILE) -> "Costs":
        """Read what was measured."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def of(self, test: Item) -> float:
        """Return what one test takes; in a file that was measured, what is not named was cheap."""
        name = key(test.nodeid)
        unknown = is_slow(test) and name.partition("::")[0] not in self.files
        return self.named.get(name, UNKNOWN_SLOW_SECONDS if unknown else self.fast)

    @cached_property
    def files(self) -> frozenset[str]:
        """Files with a named test."""
        return frozenset(name.partition("::")[0] for name in self.named)


@dataclass(frozen=True)
class LeftOut:
    """Slow tests of one file and one priority.

    Attributes:
        file: Name of the file, without its folder.
        priority: Priority of the tests.
        tests: How many they are.
        seconds: What they would have taken, all together, on this machine.
    """

    file: str
    priority: int
    tests: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.file}: {self.tests} tests of priority {self.priority}, {self.seconds / 60:.1f} minutes"


@dataclass(frozen=True)
class Plan:
    """A session that fits, as far as that is possible.

    Attributes:
        kept: Tests to run, in order.
        left_out: What is not run, in the order in which it was left out.
        seconds: Estimate for what is kept.
        wanted: Estimate for all.
    """

    kept: list[Any]
    left_out: list[LeftOut]
    seconds: float
    wanted: float


def key(nodeid: str) -> str:
    """Return ``file.py::function`` of a test, without folder, class and parameters."""
    path, _, rest = nodeid.partition("::")
    return f"{path.rpartition('/')[2]}::{rest.partition('[')[0].rpartition('::')[2]}"


def is_slow(test: Item) -> bool:
    """Whether a test is marked so."""
    return test.get_closest_marker("slow") is not None


def priority(test: Item) -> int:
    """Return the priority of a test: 0 if it is not slow, otherwise that of its mark ``ci``, 1 where none is given."""
    if not is_slow(test):
        return 0
    mark = test.get_closest_marker("ci")
    return LEAST_PRIORITY if mark is None else int(mark.kwargs.get("priority", 1))


def plan(tests: Sequence[Item], costs: Costs, *, factor: float, workers: int, budget: float | None) -> Plan:
    """Choose and order.

    Tests that are not slow always stay. Slow ones go in groups of one file and one priority, since those share what is
    dear to set up: the last priority first, and of one priority the dearest first.

    Args:
        tests: What pytest has selected.
        costs: What tests take on a quiet machine.
        factor: How many times slower this machine is.
        workers: pytest's processes.
        budget: Seconds that there are; None: no limit.
    """
    rate = factor / (costs.speedup if workers > 1 else 1.0)
    seconds = wanted = rate * sum(map(costs.of, tests))
    groups = _grouped(tests, lambda test: (priority(test), _file(test)))
    cost = {group: rate * sum(map(costs.of, members)) for group, members in groups.items()}
    left_out = []
    for group in sorted((one for one in groups if one[0] > 0), key=lambda one: (-one[0], -cost[one], one[1])):
        if budget is None or seconds <= budget:
            break
        seconds -= cost[group]
        left_out.append(LeftOut(group[1], group[0], len(groups.pop(group)), cost[group]))
    kept = {id(test) for members in groups.values() for test in members}
    return Plan(_ordered([test for test in tests if id(test) in kept], costs), left_out, seconds, wanted)


def _ordered(tests: Iterable[Item], costs: Costs) -> list[Item]:
    """Put files with fast tests only before the others, and the most urgent and longest of these first."""
    files = _grouped(tests, lambda test: test.nodeid.partition("::")[0])

    def rank(members: list[Item]) -> tuple[int, float]:
        return min((priority(one) for one in members if is_slow(one)), default=0), -sum(map(costs.of, members))

    return [test for members in sorted(files.values(), key=rank) for test in members]


def _grouped(tests: Iterable[Item], by: Callable[[Item], Any]) -> dict[Any, list[Item]]:
    groups: dict[Any, list[Item]] = {}
    for test in tests:
        groups.setdefault(by(test), []).append(test)
    return groups


def _file(test: Item) -> str:
    return key(test.nodeid).partition("::")[0]


def shard(tests: Sequence[Item], costs: Costs, index: int, count: int) -> list[Any]:
    """Return the tests of one of ``count`` machines that share a session, which are about equally dear.

    Args:
        tests: What pytest has selected.
        costs: What tests take.
        index: Which machine, from 1.
        count: How many there are.
    """
    files = _grouped(tests, lambda test: test.nodeid.partition("::")[0])
    cost = {file: sum(map(costs.of, members)) for file, members in files.items()}
    loads = [0.0] * count
    chosen = set()
    for file in sorted(files, key=lambda one: (-cost[one], one)):
        lightest = loads.index(min(loads))
        loads[lightest] += cost[file]
        if lightest == index - 1:
            chosen.add(file)
    return [test for test in tests if test.nodeid.partition("::")[0] in chosen]
