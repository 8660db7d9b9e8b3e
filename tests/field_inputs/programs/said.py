# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a program's libraries say through logging. Importing it makes the simulated device, if the program has one."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import verl_hw_sim

verl_hw_sim.autoload()  # torch, which would do this, was imported before the program's environment was set


@contextmanager
def lines() -> Iterator[list[str]]:
    """Collect every message of WARNING and above, whoever logs it."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    collector = Collector(logging.WARNING)
    logging.getLogger().addHandler(collector)
    try:
        yield found
    finally:
        logging.getLogger().removeHandler(collector)


def text_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
