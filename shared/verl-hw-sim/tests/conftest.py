# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated processes for the tests: a process simulates one vendor, so each test looks at a child's results."""

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from machine_speed import scaled

CHILDREN = Path(__file__).parent / "children"
CHILD_SECONDS = 240
BUILD_SECONDS = 900  # a busy machine takes minutes where a quiet one takes 40 s
TORCH_VERSION = importlib.metadata.version("torch")
# The cuda device needs a torch without CUDA; the locked one has it, unless the metadata says +cpu.
CPU_TORCH = "+cpu" in TORCH_VERSION


def clean_environment() -> dict[str, str]:
    """The environment without anything that would change what a child simulates or how it computes."""
    steering = ("VERL_HW_SIM", "VERL_HW_PROBE", "TORCH_DEVICE_BACKEND")
    unwanted = (*steering, "MLU_", "CN_", "TOPS_", "ZE_", "ONEAPI_", "MACA_", "CUDA_VISIBLE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    if "VERL_HW_SIM_CACHE" in os.environ:
        kept["VERL_HW_SIM_CACHE"] = os.environ["VERL_HW_SIM_CACHE"]
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "GLOO_SOCKET_IFNAME": "lo"}


def python(
    *arguments: str, program: str = sys.executable, seconds: int = CHILD_SECONDS, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run a Python with these variables added to a clean environment."""
    command = [program, *arguments]
    process = subprocess.Popen(
        command,
        env={**clean_environment(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its forks can be ended with it
    )
    try:
        output, error = process.communicate(timeout=scaled(seconds))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, error = process.communicate()
        error += f"\nended after {seconds} s"
    return subprocess.CompletedProcess(command, process.returncode, output, error)


class Results:
    """What the checks of one child reported."""

    def __init__(self, child: "subprocess.CompletedProcess[str]", suites: Mapping[str, int]) -> None:
        self._suites = suites
        self._status = child.returncode
        self._error = child.stderr[-4000:]
        self._passed: Counter[tuple[str, str]] = Counter()
        self._failed: dict[tuple[str, str], str] = {}
        self.start_share = float("inf")  # CPU time of the start, as a part of that of importing torch
        for line in child.stdout.splitlines():
            if line.startswith("STARTED "):
                self.start_share = float(line.split()[1])
            elif line.startswith("CHECK "):
                self._take(json.loads(line.removeprefix("CHECK ")))

    def _take(self, report: dict[str, str]) -> None:
        key = (report["suite"], report["check"])
        if report["outcome"] is None:
            self._passed[key] += 1
        else:
            self._failed[key] = f"{self._failed.get(key, '')}rank {report['rank']}: {report['outcome']}\n"

    def failure(self, suite: str, check: str) -> str | None:
        """Why a check failed, or None. One that did not report on every rank failed."""
        key = (suite, check)
        if key not in self._failed and self._passed[key] == self._suites.get(suite, 1):
            return None
        reason = self._failed.get(key, f"{suite}.{check} did not report; the child ended with {self._status}")
        return f"{reason}\nstderr: {self._error}"


@pytest.fixture(scope="session")
def simulate() -> Callable[..., Results]:
    """``simulate(vendor, suites, **variables)``: results of suites with their number of ranks.

    The suites share one process that imports torch, and run once in a session.
    """
    done: dict[tuple[object, ...], Results] = {}

    def run(vendor: str, suites: Mapping[str, int], **variables: str) -> Results:
        if vendor == "metax" and not CPU_TORCH:
            pytest.skip(f"simulating metax needs a CPU build of torch; this is {TORCH_VERSION}")
        key = (vendor, *suites.items())
        if key not in done:
            arguments = [f"{suite}:{ranks}" for suite, ranks in suites.items()]
            script = str(CHILDREN / "simulated.py")
            build = python("-m", "verl_hw_sim", "build", vendor, seconds=BUILD_SECONDS, **variables)
            assert build.returncode == 0, build.stderr
            child = python(script, *arguments, VERL_HW_SIM=f"{vendor}:2", **variables)
            done[key] = Results(child, suites)
        return done[key]

    return run


@pytest.fixture(scope="session")
def run_python() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    return python
