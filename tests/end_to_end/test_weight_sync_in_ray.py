# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's own manager moves weights from a trainer to standalone replicas while requests go on."""

from pathlib import Path

import pytest
from raykit import answer_of
from tiny_models import write_language_model

from verl_hw_sim import simulated_environment

PROGRAM = Path(__file__).parent / "weight_sync_ray_program.py"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict:
    model = tmp_path_factory.mktemp("weight_sync") / "model"
    write_language_model(model)
    return answer_of(PROGRAM, model, VERL_PLATFORM="cambricon", **simulated_environment("cambricon", 4))


def test_weights_are_the_trainers_bit_by_bit_after_each_update(seen):
    for update in seen["updates"].values():
        assert update["stale"] == [False, False]
        assert update["equal"] == [True, True]


def test_requests_go_on(seen):
    assert seen["answered with 2"]
    assert seen["answered with 3"]
    assert seen["errors"] == []


def test_nccl_in_the_configuration_stands_for_the_vendors_library(seen):
    for engine in seen["updates"]["1"]["engines"]:
        assert engine["class"] == "DefaultEngine"
        assert engine["backend"] == "cncl"


def test_one_trainer_rank_sends_one_drains_and_the_group_stays(seen):
    engines = [update["engines"] for update in seen["updates"].values()]
    assert [engine["rank"] for engine in engines[0]] == [0, -1, 1, 2]
    groups = {engine["group"] for update in engines for engine in update if engine["rank"] >= 0}
    assert len(groups) == 1


def test_replicas_go_and_come_back(seen):
    assert seen["without second"]["equal"] == [True]
    assert seen["with second again"]["equal"] == [True, True]


def test_a_rollout_worker_that_dies_ends_the_update_and_the_next_one_works_without_it(seen):
    assert "rank 2 (rollout worker 1" in seen["killed"] or "died" in seen["killed"]
    assert seen["after the kill"]["equal"] == [True]
    processes = [[one["process"] for one in seen[name]["engines"]] for name in ("without second", "after the kill")]
    assert processes[0] == processes[1]
