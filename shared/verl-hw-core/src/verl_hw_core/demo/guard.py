# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m verl_hw_core.demo.guard MARK``: end the processes of a launch when the command that started it is killed.

A command that gets SIGKILL (kill -9, the kernel's out-of-memory killer) can end nothing itself. This process waits at
the other end of a pipe, which the kernel closes when the command is gone.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from verl_hw_core.demo.processes import kill_marked

_ALL_IS_WELL = b"."


@contextmanager
def guarded(mark: str) -> Iterator[None]:
    """While this runs, the processes that carry ``mark`` end with the calling process, whatever ends it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VERL_")}
    guard = subprocess.Popen(
        [sys.executable, "-m", __name__, mark],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what is sent to the command's group must not reach it
    )
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            guard.communicate(_ALL_IS_WELL)


def main(mark: str) -> None:
    """Wait for the command's word, or for its death."""
    if sys.stdin.buffer.read() != _ALL_IS_WELL:
        kill_marked(mark)


if __name__ == "__main__":
    main(sys.argv[1])
