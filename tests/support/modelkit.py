# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run a program that needs the example models of the documentation, and keep what it says."""

import os
import subprocess
import sys
from pathlib import Path

from documents import ROOT
from machine_speed import scaled
from platformkit import clean_environment

MODULES = (ROOT / "tests" / "conformance", ROOT / "docs" / "examples")


def run_with_models(*arguments: object, log: Path, seconds: int, path: str = "", **environment: str) -> None:
    """Run ``python ARGUMENTS``; a failure shows the end of what it said.

    Args:
        arguments: Program and arguments.
        log: File for its output.
        seconds: Longest time.
        path: A folder more to import from.
        environment: Variables to set.
    """
    with log.open("w") as stream:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", *map(str, arguments)],
            env=clean_environment(
                OMP_NUM_THREADS="1",
                HF_HUB_OFFLINE="1",
                PYTHONPATH=os.pathsep.join([*map(str, MODULES), path]),
                **environment,
            ),
            stdout=stream,
            stderr=subprocess.STDOUT,
            timeout=scaled(seconds),
            check=False,
        )
    assert done.returncode == 0, log.read_text()[-3000:]
