# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Turn the signals that end a command into one exception, so that its children are always ended first."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, a termination request or a closed terminal.

    Attributes:
        exit_code: What a shell expects from a command that ended this way (130 for Ctrl-C).
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.exit_code = 128 + signum


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Raise :class:`Interrupted` at the first such signal and ignore later ones, so that cleaning up can finish."""

    def first(signum: int, _frame: FrameType | None) -> None:
        for other in previous:
            signal.signal(other, signal.SIG_IGN)
        raise Interrupted(signum)

    # A signal that the parent made us ignore (nohup, a background job) stays ignored.
    wanted = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, first) for number in wanted}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
