# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the ``check_*`` functions of a child program and reports each on a line of its own."""

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any


def run(namespace: dict[str, Any]) -> None:
    """Run every check in the order of the file; exit status 1 when one fails."""
    failed = False
    for name, function in list(namespace.items()):
        if not name.startswith("check_"):
            continue
        try:
            function()
            outcome = None
        except Exception:  # noqa: BLE001 - printed as the check's outcome, and the next check runs
            outcome = traceback.format_exc()
            failed = True
        print("CHECK " + json.dumps({name: outcome}), flush=True)
    sys.exit(int(failed))


def raises(expected: type[BaseException], action: Callable[[], Any], *words: str) -> None:
    """The action raises, and the message contains the words."""
    try:
        action()
    except expected as error:
        said = str(error)
    else:
        raise AssertionError(f"no {expected.__name__} was raised")
    for word in words:
        assert word in said, f"{word!r} is not in {said!r}"
