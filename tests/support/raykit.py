# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Start a program that has a real Ray of its own, and take its answer."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from machine_speed import scaled
from platformkit import clean_environment

SUPPORT = Path(__file__).parent
# For every Ray that a test starts: a busy machine took more than 120 s.
START = {"RAY_raylet_start_wait_time_s": f"{scaled(300):.0f}"}


def answer_of(program: Path, *arguments: object, seconds: int = 800, **environment: str) -> Any:
    """What the program printed, as JSON, in its last line."""
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), *map(str, arguments)],
        env=clean_environment(
            OMP_NUM_THREADS="1",
            HF_HUB_OFFLINE="1",
            PYTHONPATH=os.pathsep.join((str(program.parent), str(SUPPORT))),
            **START,
            **environment,
        ),
        capture_output=True,
        text=True,
        timeout=scaled(seconds),
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    return json.loads(finished.stdout.splitlines()[-1])
