# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Turn the signals that end a command into one exception, so that its children are always ended first."""

import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Ctrl-C, a termination request or a closed terminal.

    No KeyboardInterrupt: typer would turn that into an exit code and a message of its own.

    Attributes:
        exit_code: What a shell expects from a command that ended this way (130 for Ctrl-C).
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.exit_code = 128 + signum


def raise_on_interrupt() -> None:
    """From now on, raise :class:`Interrupted` at the first such signal.

    Later ones are ignored, for as long as the process lives, so that cleaning up can finish.
    """

    def first(signum: int, _frame: FrameType | None) -> None:
        for other in wanted:
            signal.signal(other, signal.SIG_IGN)
        raise Interrupted(signum)

    # A signal that the parent made us ignore (nohup, a background job) stays ignored.
    wanted = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in wanted:
        signal.signal(number, first)
