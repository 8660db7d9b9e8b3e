# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How many times slower this machine is today than a quiet one; tests multiply their deadlines by it.

It is measured once a session, by ``conftest.py``, and handed to every child process in an environment variable.
"""

import os
import subprocess
import sys
import time

# Not VERL_...: tests take those out of the environment of what they start.
VARIABLE = "MACHINE_SPEED_FACTOR"
# What the two take on two quiet cores, where the tests' deadlines were chosen.
QUIET_IMPORT_SECONDS = 2.0
QUIET_LOOP_SECONDS = 0.13
# Nearer to a quiet machine than this is a quiet one: it needs no second look.
_NOISE = 1.25
# Slower than this nothing can be tested in a useful time, and a deadline must not become endless.
_MOST = 30.0


def factor() -> float:
    """Return the session's factor, at least 1; 1 where nobody has measured."""
    return max(1.0, float(os.environ.get(VARIABLE) or 1.0))


def scaled(quiet: float) -> float:
    """Return the deadline on this machine for what ``quiet`` seconds suffice on a quiet one."""
    return quiet * factor()


def measure_once() -> None:
    """Measure, unless this was done, or the user has set the variable.

    Raises:
        ValueError: The variable is set to something that is no factor.
    """
    if not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = f"{min(_MOST, measure()):.2f}"
        return
    value = os.environ[VARIABLE]
    try:
        good = 0 < float(value) <= _MOST
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"{VARIABLE}={value!r}: a number above 0 and at most {_MOST:g} is wanted; unset it to measure")


def measure() -> float:
    """Return the worse of two ratios to a quiet machine: a loop, and a process that imports torch.

    The better of two imports counts: the first one of an environment compiles Python's files.
    """
    ratio = min(_import_seconds() / QUIET_IMPORT_SECONDS, _MOST)
    if ratio > _NOISE:
        ratio = min(ratio, _import_seconds() / QUIET_IMPORT_SECONDS)
    return max(1.0, ratio, min(_loop_seconds() for _ in range(3)) / QUIET_LOOP_SECONDS)


def _import_seconds() -> float:
    begun = time.monotonic()
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import torch"],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,  # an environment without torch is a quick one
    )
    return time.monotonic() - begun


def _loop_seconds() -> float:
    begun = time.monotonic()
    total = 0
    for number in range(1_000_000):
        total += number * number % 7
    return time.monotonic() - begun
