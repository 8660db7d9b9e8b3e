# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Averages over four ranks on a simulated device whose collective library rejects AVG, or computes AVG or SUM wrongly.

See reduction_program.py for the scenarios; field reports 42, 43, 44, 45 and 98.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment

from verl_hw_sim import simulated_environment

PROGRAM = Path(__file__).parent / "reduction_program.py"
RANKS = 4
AVERAGE = 2.5  # of 1, 2, 3, 4

pytestmark = [pytest.mark.slow, pytest.mark.ci]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory) -> list[dict]:
    """What each rank wrote."""
    out = tmp_path_factory.mktemp("reduction")
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), str(out), str(RANKS)],
        env=clean_environment(OMP_NUM_THREADS="1", **simulated_environment("cambricon", RANKS)),
        capture_output=True,
        text=True,
        timeout=scaled(240),
        check=False,
    )
    errors = "".join(path.read_text() for path in sorted(out.glob("error-*.txt")))
    assert finished.returncode == 0, errors or finished.stderr[-3000:]
    written = [json.loads((out / f"result-{RANKS}-{rank}.json").read_text()) for rank in range(RANKS)]
    written[0]["log"] = (out / "log-0.txt").read_text()
    return written


@pytest.mark.parametrize("scenario", ["plain", "rejected", "avg_wrong", "sound"])
def test_every_average_is_right(ranks, scenario):
    for rank, written in enumerate(ranks):
        for name, values in written[scenario]["averages"].items():
            if rank == 0 or name not in ("reduce", "async reduce"):
                assert values == [AVERAGE] * len(values), (scenario, name, rank)


def test_without_us_a_rejecting_library_stops_the_run(ranks):
    for name in ("rejected, not installed", "rejected, native asked for"):
        assert "AVG is not supported" in ranks[0][name]["error"]


def test_only_averages_on_the_device_are_touched(ranks):
    for written in ranks:
        assert written["rejected"]["not touched"] == {
            "host avg": [AVERAGE] * 2,
            "device sum": [10.0] * 2,
            "device max": [RANKS],
            "gradient": [3.0] * 2,  # a collective is unseen by autograd, and so is its division
        }


def test_groups_of_one_rank_and_groups_of_others_keep_the_value(ranks):
    for rank, written in enumerate(ranks):
        assert written["rejected"]["sub-groups"] == {"own value": [rank + 1.0] * 2, "rank": rank}


def test_an_average_in_float16_does_not_overflow_in_its_sum(ranks):
    for written in ranks:
        assert written["rejected"]["large halves"] == [40000.0] * 2


def test_integers_are_refused_as_torch_does(ranks):
    assert ranks[0]["rejected"]["integers"]["error"].startswith("RuntimeError: all_reduce with ReduceOp.AVG")
    assert "can't be cast" in ranks[0]["rejected"]["integers"]["error"]


@pytest.mark.parametrize(("scenario", "mesh"), [("rejected", "fsdp2"), ("rejected", "hsdp"), ("avg_wrong", "fsdp2")])
def test_fsdp2_switches_every_nested_module_and_the_gradients_stay(ranks, scenario, mesh):
    for written in ranks:
        sound, faulty = written["plain"][mesh], written[scenario][mesh]
        assert (sound["switched"], sound["error"], faulty["error"]) == (0, "", "")
        assert faulty["switched"] == faulty["nested"] == 2
        for expected, got in zip(sound["gradients"], faulty["gradients"], strict=True):
            assert got == pytest.approx(expected, rel=1e-6)


def test_a_wrong_sum_stops_the_run(ranks):
    for written in ranks:
        assert "ReductionError: The collective backend 'cncl' for mlu" in written["sum_wrong"]["error"]
        assert "expected 10, got 11" in written["sum_wrong"]["error"]


def test_odd_mode_is_refused(ranks):
    assert "VERL_HW_REDUCTION='perhaps' must be one of auto, sum, native" in ranks[0]["odd mode"]["error"]


def test_a_sound_library_averages_natively(ranks):
    assert ranks[0]["sound"]["decision"] == {"method": "native", "why": "AVG gave the known answers"}


def test_one_line_a_group_says_why(ranks):
    lines = [line for line in ranks[0]["log"].splitlines() if "sum-then-divide" in line]
    assert any("over 4 ranks on mlu" in line and "AVG is refused" in line for line in lines)
    assert any("AVG is wrong: all_reduce of 1 float32 elements, expected 2.5, got 0.625" in line for line in lines)
    assert not any("recursion" in line for line in lines)


def test_uninstalling_gives_torch_its_functions_back(ranks):
    assert ranks[0]["uninstalled"]["own"]
