# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Replaced functions survive cloudpickle into Ray workers, and carry nothing into those of another platform.

See ray_references_program.py; the simulated collective library rejects AVG.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment
from raykit import START, SUPPORT

from verl_hw_sim import simulated_environment

PROGRAM = Path(__file__).parent / "ray_references_program.py"
OTHERS = ["nvidia", "without plugins"]
AT_IMPORT = {"chosen": ["platform-table"], "nvidia": ["platform-table"], "without plugins": []}  # by `import verl`

pytestmark = [pytest.mark.slow, pytest.mark.ci]


@pytest.fixture(scope="module")
def answers() -> dict:
    """What the driver and each worker of one cluster wrote."""
    simulated = simulated_environment("cambricon", 1, limits="avg_rejected")
    folder = tempfile.mkdtemp(prefix="ray-")  # a short path: Ray's sockets lie below it
    try:
        finished = subprocess.run(
            [sys.executable, "-W", "ignore", str(PROGRAM), folder],
            env=clean_environment(
                OMP_NUM_THREADS="1", VERL_PLATFORM="cambricon", PYTHONPATH=str(SUPPORT), **simulated, **START
            ),
            capture_output=True,
            text=True,
            timeout=scaled(280),
            check=False,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout.splitlines()[-1])


def test_a_worker_of_the_chosen_vendor_behaves_as_patched(answers):
    found = answers["chosen"]
    assert found["platform"] == "cambricon"
    # No engine was built there: the references bring their rows along.
    assert found["in force at first"] == AT_IMPORT["chosen"]
    assert found["average"] == [1.0, 1.0]
    assert found["log probs"] == [2, 2]
    assert {"reduce-avg", "rmpad-log-probs"} <= set(found["in force at last"])


def test_a_reference_finds_what_is_applied_after_it_arrived(answers):
    assert answers["chosen"]["rotary at first"] == "own"
    assert answers["chosen"]["rotary"] == "patched"


def test_a_function_bound_before_the_replacement_stays_torchs_own(answers):
    assert "AVG is not supported" in answers["chosen"]["bound before"]
    assert answers["nvidia"]["bound before"] == [1.0, 1.0]


def test_nothing_is_replaced_twice_and_all_of_it_is_taken_back(answers):
    found = answers["chosen"]
    assert found["once"]
    assert found["restored"]


@pytest.mark.parametrize("worker", OTHERS)
def test_a_worker_of_another_platform_gets_its_own_functions(answers, worker):
    found = answers[worker]
    assert found["platform"] != "cambricon"
    assert found["in force at first"] == found["in force at last"] == AT_IMPORT[worker]
    assert found["average"] == [1.0, 1.0]  # gloo's own
    assert found["rotary at first"] == "own"
    assert found["log probs"] == found["verl's own name"]
    assert "flash_attn" in found["log probs"], "ours was carried along"


@pytest.mark.parametrize("name", ["bound before", "all_reduce", "rotary", "helper"])
def test_no_copy_travels(answers, name):
    same, size = answers["driver"]["identities"][name]
    assert same
    assert size < 300


def test_the_driver_gets_its_own_function_back_and_its_modules_as_they_were(answers):
    assert answers["driver"]["echo"]
    assert answers["driver"]["restored"]
