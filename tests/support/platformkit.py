# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Ask a vendor's platform on simulated devices, in a process of its own."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from machine_speed import scaled

from verl_hw_sim import simulated_environment

PROGRAM = Path(__file__).parent / "platform_program.py"


def clean_environment(**changes: str) -> dict[str, str]:
    """This process's environment without anything that steers verl, verl-hw or the visible devices."""
    steering = ("VERL_", "RAY_", "USE_FLAGCX")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    return {name: value for name, value in inherited.items() if not name.endswith("_VISIBLE_DEVICES")} | changes


def platform_answers(vendor: str, devices: int = 4, **environment: str) -> dict:
    """What the platform answers in a process with ``devices`` simulated devices of ``vendor``."""
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM)],
        env=clean_environment(**simulated_environment(vendor, devices), **environment),
        capture_output=True,
        text=True,
        timeout=scaled(240),
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout.splitlines()[-1])


needs_cpu_torch = pytest.mark.skipif(
    not metadata.version("torch").endswith("+cpu"),
    reason="the simulated cuda device of MetaX needs a CPU-only build of torch",
)
