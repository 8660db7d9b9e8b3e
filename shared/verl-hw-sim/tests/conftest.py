# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated processes for the tests: a process simulates one vendor, so each test looks at a child's results."""

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CHILD_SECONDS = 240
CHILDREN = Path(__file__).parent / "children"
TORCH_VERSION = importlib.metadata.version("torch")
# The cuda device needs a torch without CUDA; the locked one has it, unless the metadata says +cpu.
CPU_TORCH = "+cpu" in TORCH_VERSION


def clean_environment() -> dict[str, str]:
    """The environment without anything that would change what a child simulates or how it computes."""
    masks = ("MLU_", "TOPS_", "ZE_AFFINITY", "MACA_", "CUDA_VISIBLE")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("VERL_HW_SIM", "VERL_HW_PROBE", "TORCH_DEVICE_BACKEND", *masks))
        or name == "VERL_HW_SIM_CACHE"
    }
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "GLOO_SOCKET_IFNAME": "lo"}


def python(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a Python with these variables added to a clean environment."""
    command = [sys.executable, *arguments]
    process = subprocess.Popen(
        command,
        env={**clean_environment(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its forks can be ended with it
    )
    try:
        output, error = process.communicate(timeout=CHILD_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, error = process.communicate()
        error += f"\nended after {CHILD_SECONDS} s"
    return subprocess.CompletedProcess(command, process.returncode, output, error)


class Results(dict[tuple[str, str], str]):
    """Failures by suite and check; None for a check that passed, and the child's end for one that did not report."""

    def __init__(self, child: "subprocess.CompletedProcess[str]", ranks: dict[str, int]) -> None:
        self._end = f"did not report; the child ended with {child.returncode}"
        self._error = child.stderr[-4000:]
        self.start_seconds = self.start_cpu_seconds = float("inf")
        passed: dict[tuple[str, str], int] = {}
        for line in child.stdout.splitlines():
            if line.startswith("STARTED "):
                self.start_seconds, self.start_cpu_seconds = map(float, line.split()[1:])
            if not line.startswith("CHECK "):
                continue
            report = json.loads(line.removeprefix("CHECK "))
            key = (report["suite"], report["check"])
            if report["outcome"] is None:
                passed[key] = passed.get(key, 0) + 1
            else:
                self[key] = self.get(key, "") + f"rank {report['rank']}: {report['outcome']}\n"
        self._passed = {key for key, count in passed.items() if count == ranks.get(key[0], 1)}

    def failure(self, suite: str, check: str) -> str | None:
        """Why a check failed, or None."""
        if (suite, check) in self._passed:
            return None
        return self.get((suite, check), f"{suite}.{check} {self._end}") + f"\nstderr: {self._error}"


@pytest.fixture(scope="session")
def simulated_results() -> Callable[..., Results]:
    """``simulated_results(vendor, device_checks=1, collective_checks=2)``: suites with their number of ranks.

    The suites share one process that imports torch, and run once in a session.
    """
    done: dict[tuple[object, ...], Results] = {}

    def run(vendor: str, **suites: int) -> Results:
        if vendor == "metax" and not CPU_TORCH:
            pytest.skip(f"simulating metax needs a CPU build of torch; this is {TORCH_VERSION}")
        key = (vendor, *suites.items())
        if key not in done:
            arguments = [f"{suite}:{ranks}" for suite, ranks in suites.items()]
            child = python(str(CHILDREN / "simulated.py"), *arguments, VERL_HW_SIM=f"{vendor}:2")
            done[key] = Results(child, suites)
        return done[key]

    return run


@pytest.fixture(scope="session")
def run_python() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    return python
