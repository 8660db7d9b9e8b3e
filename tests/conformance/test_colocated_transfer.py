# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's own weight transfer to rollout workers on the trainer's device, weights above the bucket included."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment

from verl_hw_sim import simulated_environment

PROGRAM = Path(__file__).parent / "colocated_transfer_program.py"

pytestmark = [pytest.mark.slow, pytest.mark.ci]


@pytest.fixture(scope="module")
def seen() -> dict:
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM)],
        env=clean_environment(**simulated_environment("cambricon", 2), OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=scaled(240),
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout.splitlines()[-1])


@pytest.mark.parametrize("way", ["shared memory", "ipc"])
def test_every_weight_arrives_on_the_receivers_device(seen, way):
    case = seen[way]
    assert case["complete"]
    for name, (right, device) in case["found"].items():
        assert right, name
        assert device == "mlu:1", name
    assert case["ends"][-1] is True
    assert not any(case["ends"][:-1])


def test_shared_memory_is_given_back(seen):
    assert seen["shared memory"]["sender"] == 0
    assert seen["shared memory"]["left in /dev/shm"] == []


def test_the_ordinal_of_the_handle_is_the_receivers(seen):
    assert seen["ipc"]["ordinals asked for"] == [1, 1, 1]


def test_the_simulators_device_has_no_ipc_and_says_so(seen):
    assert seen["supported"] is False
