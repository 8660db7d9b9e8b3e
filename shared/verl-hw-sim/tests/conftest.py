# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated processes for the tests: a process simulates one vendor, so each test looks at a child's results."""

import importlib.metadata
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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
    return subprocess.run(
        [sys.executable, *arguments],
        env={**clean_environment(), **variables},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def results_of(output: str, error: str, status: int) -> dict[str, str | None]:
    """What each check of a child reported; a check that is missing gets the child's end as its failure."""
    results: dict[str, str | None] = {}
    for line in output.splitlines():
        if line.startswith("CHECK "):
            results.update(json.loads(line.removeprefix("CHECK ")))

    class Results(dict[str, str | None]):
        def __missing__(self, name: str) -> str:
            return f"{name} did not report; the child ended with {status}\n{output[-2000:]}\n{error[-4000:]}"

    return Results(results)


@pytest.fixture(scope="session")
def run_python() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    return python


@pytest.fixture(scope="session")
def child_results() -> Callable[..., dict[str, str | None]]:
    """``child_results(script, vendor, **variables)``: results by check; each child runs once in a session."""
    done: dict[tuple[object, ...], dict[str, str | None]] = {}

    def run(script: str, vendor: str, **variables: str) -> dict[str, str | None]:
        if vendor == "metax" and not CPU_TORCH:
            pytest.skip(f"simulating metax needs a CPU build of torch; this is {TORCH_VERSION}")
        key = (script, vendor, *sorted(variables.items()))
        if key not in done:
            request = vendor if ":" in vendor else f"{vendor}:2"
            child = python(str(CHILDREN / script), VERL_HW_SIM=request, **variables)
            done[key] = results_of(child.stdout, child.stderr, child.returncode)
        return done[key]

    return run


@pytest.fixture(scope="session")
def rank_results() -> Callable[..., list[dict[str, str | None]]]:
    """``rank_results(script, vendor, *arguments, **variables)``: results by check of each of two ranks."""
    done: dict[tuple[object, ...], list[dict[str, str | None]]] = {}

    def run(script: str, vendor: str, *arguments: str, **variables: str) -> list[dict[str, str | None]]:
        if vendor == "metax" and not CPU_TORCH:
            pytest.skip(f"simulating metax needs a CPU build of torch; this is {TORCH_VERSION}")
        key = (script, vendor, *arguments, *sorted(variables.items()))
        if key not in done:
            done[key] = start_ranks(script, vendor, *arguments, **variables)
        return done[key]

    return run


def start_ranks(script: str, vendor: str, *arguments: str, **variables: str) -> list[dict[str, str | None]]:
    """Two ranks of one script; no launcher, which would import torch once more."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    if vendor:
        variables["VERL_HW_SIM"] = f"{vendor}:2"
    common = {**clean_environment(), **variables, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(CHILDREN / script), *arguments],
            env={**common, "MASTER_PORT": str(port), "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    results = []
    try:
        for process in ranks:
            output, error = process.communicate(timeout=280)
            results.append(results_of(output, error, process.returncode))
    finally:
        for process in ranks:
            if process.poll() is None:
                process.kill()
    return results
