# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Management tools that hang, print without end or leave children behind: one deadline, and nothing stays."""

import inspect
import os
import re
import signal
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from detectionkit import DEADLINE_S, HANGS, SPAWNS, SPAWNS_AND_EXITS, TOOLS, Machine, children, is_running
from machine_speed import scaled

from verl_hw_core.detection import survey
from verl_hw_core.detection.tool_run import ToolCall, ToolResult, run_all


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.make(tmp_path)


@pytest.fixture(autouse=True)
def no_child_left() -> Iterator[None]:
    before = set(children())
    yield
    assert set(children()) <= before


def _run(*tools: Path, seconds: float = 1.0) -> list[ToolResult]:
    calls = [ToolCall(str(tool)) for tool in tools]
    results = run_all(calls, time.monotonic() + scaled(seconds), {"PATH": "/nowhere"})
    return [results[call] for call in calls]


def _wait_until_gone(pid: int) -> None:
    end = time.monotonic() + scaled(10)
    while is_running(pid):
        assert time.monotonic() < end, f"process {pid} is still running"
        time.sleep(0.02)


def test_hanging_tools_share_one_deadline(machine: Machine) -> None:
    for tool in TOOLS.values():
        machine.tool(tool, HANGS)
    started = time.monotonic()
    answer = machine.survey(call="thorough=True")
    with_interpreter = time.monotonic() - started
    # One after the other they would take three times the deadline, and waited for, a minute.
    assert inspect.signature(survey).parameters["deadline_s"].default == DEADLINE_S == 2.0
    assert answer["verdicts"] == {"cambricon": "unknown", "enflame": "unknown", "intel": "absent", "metax": "unknown"}
    assert scaled(DEADLINE_S) * 0.5 < answer["seconds"] < scaled(DEADLINE_S) * 1.5
    assert with_interpreter < scaled(DEADLINE_S + 3)
    assert answer["children"] == []


@pytest.mark.parametrize("body", [SPAWNS, SPAWNS_AND_EXITS])
def test_whole_group_is_killed_though_a_grandchild_holds_stdout(machine: Machine, body: str) -> None:
    tool = machine.tool("cnmon", body)
    started = time.monotonic()
    (result,) = _run(tool)
    assert time.monotonic() - started < scaled(2.5)
    assert result.answered is (body is SPAWNS_AND_EXITS)
    _wait_until_gone(int(Path(f"{tool}.pid").read_text()))


def test_quick_tool_does_not_wait_for_the_deadline(machine: Machine) -> None:
    started = time.monotonic()
    (result,) = _run(machine.tool("cnmon", SPAWNS_AND_EXITS), seconds=30)
    assert result.answered
    assert time.monotonic() - started < scaled(5)


def test_one_hanging_tool_does_not_hide_the_others(machine: Machine) -> None:
    late, good, bad = _run(
        machine.tool("a", HANGS), machine.tool("b", "echo yes"), machine.tool("c", "echo no >&2; exit 215")
    )
    assert (late.answered, good.answered, bad.answered) == (False, True, False)
    said = re.search(r"gave no answer in ([\d.]+) s", late.why)
    assert said
    assert scaled(0.9) < float(said.group(1)) < scaled(2.5)
    assert "exited 0" in good.why
    assert "'yes'" in good.why
    assert "exited 215" in bad.why
    assert "'no'" in bad.why


def test_endless_output_is_bounded(machine: Machine) -> None:
    tracemalloc.start()
    try:
        (result,) = _run(machine.tool("loud", "exec /usr/bin/yes"), seconds=0.5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not result.answered
    assert len(result.why) < 400
    assert peak < 2_000_000  # "yes" prints hundreds of megabytes in that time


def test_much_output_does_not_block_the_tool(machine: Machine) -> None:
    (result,) = _run(
        machine.tool("long", "i=0; while [ $i -lt 40000 ]; do echo 0123456789; i=$((i+1)); done"), seconds=30
    )
    assert result.answered


def test_output_is_shown_without_control_characters(machine: Machine) -> None:
    (result,) = _run(machine.tool("colour", r"printf '\n\033[31mred\033[0m\n'"))
    assert "'[31mred[0m'" in result.why


def test_tool_that_ignores_signals_is_killed(machine: Machine) -> None:
    started = time.monotonic()
    (result,) = _run(machine.tool("deaf", "trap '' TERM INT HUP; while :; do :; done"), seconds=0.3)
    assert not result.answered
    assert time.monotonic() - started < scaled(1.5)


def test_lost_exit_status_is_not_taken_for_success(machine: Machine) -> None:
    # With SIGCHLD ignored the kernel collects children itself; subprocess then reports status 0.
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        (result,) = _run(machine.tool("cnmon", "exit 1"))
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert not result.answered
    assert "status lost" in result.why


def test_tool_has_its_own_session_and_no_terminal_input(machine: Machine) -> None:
    (result,) = _run(
        machine.tool("who", 'read -r line && exit 1; read -r a b c d e f rest < /proc/self/stat; echo "$f"')
    )
    assert result.answered
    assert f"'{os.getsid(0)}'" not in result.why


def test_deadline_in_the_past_still_gives_a_result_for_each(machine: Machine) -> None:
    results = _run(machine.tool("a", HANGS), machine.tool("b", HANGS), seconds=-1)
    assert [result.answered for result in results] == [False, False]


def test_interrupt_leaves_nothing_running(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _run(machine.tool("a", HANGS))
