# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Settings with which verl trains on wrong gradients and says nothing: refused, or equal to plain CPU.

Activation offload without gradient checkpointing (verl takes two views of one memory for one tensor), and FSDP1 with
one rank a shard (torch never averages over the replicas).
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from platformkit import clean_environment
from tiny_models import write_deep_language_model, write_value_model

from verl_hw_sim import simulated_environment

HERE = Path(__file__).parent
RANKS = (0, 1)
HEADS = ("language_model", "value_model")
ON_CPU = {
    "VERL_PLATFORM": "cpu_reference",
    "VERL_USE_EXTERNAL_MODULES": "cpu_reference",
    "VERL_USE_EXTERNAL_PLUGINS": "none",
}

pytestmark = [pytest.mark.slow, pytest.mark.ci]


def run_program(models: Path, out: Path, environment: dict[str, str], *world_sizes: int) -> None:
    out.mkdir()
    program = HERE / "gradient_settings_program.py"
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), str(models), str(out), *map(str, world_sizes)],
        env=clean_environment(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", PYTHONPATH=str(HERE), **environment),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    errors = "".join(path.read_text() for path in sorted(out.glob("error-*.txt")))
    assert finished.returncode == 0, errors or finished.stderr[-3000:]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("gradient-settings")
    write_deep_language_model(folder / "language_model", layers=4)
    write_value_model(folder / "value_model")
    return folder


@pytest.fixture(scope="module")
def simulated(models) -> Path:
    """Folder of what ranks on simulated devices wrote, of one process and of two."""
    run_program(models, models / "simulated", simulated_environment("cambricon", 2), 2, 1)
    return models / "simulated"


@pytest.fixture(scope="module")
def reference(models) -> list[dict]:
    """What each of two ranks trained to with verl's own engine on a plain CPU, without any of these settings."""
    run_program(models, models / "reference", ON_CPU, 2)
    return [read(models / "reference", 2, rank)["plain"] for rank in RANKS]


def read(folder: Path, size: int, rank: int) -> dict:
    return json.loads((folder / f"result-{size}-{rank}.json").read_text())


def agrees(found: dict, expected: dict, steps: float, weights: float) -> bool:
    """Whether loss, gradient norm and weights after training are equal to these relative tolerances."""
    return (
        found["steps"] == [pytest.approx(step, rel=steps) for step in expected["steps"]]
        and found["exported"].keys() == expected["exported"].keys()
        and all(
            sums[1] == pytest.approx(expected["exported"][name][1], rel=weights)
            for name, sums in found["exported"].items()
        )
    )


@pytest.mark.parametrize("rank", RANKS)
class TestActivationOffload:
    @pytest.mark.parametrize(
        ("strategy", "steps", "weights"),
        [("fsdp2", 1e-9, 1e-9), ("fsdp", 1e-4, 1e-3), ("fsdp2, late copies", 1e-9, 1e-9)],
    )
    def test_without_checkpointing_it_changes_no_number(self, simulated, reference, rank, strategy, steps, weights):
        assert agrees(read(simulated, 2, rank)[f"offload {strategy}"], reference[rank], steps, weights)

    def test_verls_own_key_is_still_wrong(self, simulated, reference, rank):
        found = read(simulated, 2, rank)["verl's own key"]
        assert not agrees(found, reference[rank], 1e-4, 1e-3), "row activation-offload-key is no longer needed"

    def test_nothing_is_replaced_until_an_engine_offloads(self, simulated, rank):
        written = read(simulated, 2, rank)
        assert "activation-offload-key" not in written["rows before"]
        assert "activation-offload-key" in written["rows"]

    def test_pageable_memory_is_used_where_copies_to_pinned_come_late(self, simulated, rank):
        written = read(simulated, 2, rank)
        assert "pinned-memory" not in written["rows"]
        assert "pinned-memory" in written["rows of late copies"]


@pytest.mark.parametrize("rank", RANKS)
class TestOneRankAShard:
    def test_fsdp2_averages(self, simulated, reference, rank):
        assert agrees(read(simulated, 2, rank)["one rank a shard"], reference[rank], 1e-4, 1e-3)

    @pytest.mark.parametrize("head", HEADS)
    def test_fsdp1_is_refused_with_what_works(self, simulated, rank, head):
        text = read(simulated, 2, rank)["refused"][head]
        assert text.startswith("UnsupportedModelSettingError: strategy=fsdp on 2 ranks with fsdp_size=1")
        assert "strategy=fsdp2" in text
        assert "fsdp_size=-1" in text

    def test_fsdp1_would_train_a_model_a_rank(self, simulated, reference, rank):
        found = read(simulated, 2, rank)["fsdp, one rank a shard"]
        assert not agrees(found, reference[rank], 1e-4, 1e-3), "FSDP1 averages now: the refusal can go"

    def test_a_reference_policy_is_not_refused(self, simulated, rank):
        written = read(simulated, 2, rank)["reference policy"]
        assert len(written) > 0
        assert all(-20 < value < 0 for value in written)


@pytest.mark.parametrize("head", HEADS)
def test_one_process_is_not_refused(simulated, head):
    assert read(simulated, 1, 0)["refused"][head] == ""
