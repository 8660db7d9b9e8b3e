# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the ``check_*`` functions of a suite and reports each on a line of its own."""

import json
import os
import traceback
from collections.abc import Callable
from typing import Any

# Two ranks write to one pipe: a write of up to PIPE_BUF (4096) bytes is not torn apart.
_LONGEST = 3000


def run(suite: str, namespace: dict[str, Any]) -> bool:
    """Run every check in the order of the file; returns whether all passed."""
    passed = True
    for name, function in list(namespace.items()):
        if not name.startswith("check_"):
            continue
        try:
            function()
            outcome = None
        except Exception:
            outcome = traceback.format_exc()[-_LONGEST:]
            passed = False
        report(suite, name, outcome)
    return passed


def report(suite: str, check: str, outcome: str | None) -> None:
    """Tell the test; the outcome is None, or why the check failed."""
    rank = int(os.environ.get("RANK", "0"))
    line = json.dumps({"suite": suite, "check": check, "rank": rank, "outcome": outcome})
    os.write(1, f"CHECK {line}\n".encode())


def raises(expected: type[BaseException], action: Callable[[], Any], *words: str) -> None:
    """The action raises, and the message contains the words."""
    try:
        action()
    except expected as error:
        for word in words:
            assert word in str(error), f"{word!r} is not in {str(error)!r}"
        return
    raise AssertionError(f"no {expected.__name__} was raised")


def in_fork(action: Callable[[], Any]) -> None:
    """Run an action in a fork of this process, which must not have used the device yet, and raise if it fails."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the forked process ended with {os.waitstatus_to_exitcode(status)}; see stderr"
