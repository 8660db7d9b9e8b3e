# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's own classes drive the bring-up rollout: weights from FSDP2 ranks, log-probs against the trainer's."""

from pathlib import Path

import pytest
from raykit import answer_of
from tiny_models import write_language_model

from verl_hw_sim import simulated_environment

PROGRAM = Path(__file__).parent / "rollout_ray_program.py"
TOLERANCE = 1e-5

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("rollout") / "model"
    write_language_model(folder)
    return folder


@pytest.fixture(scope="module")
def seen(model) -> dict:
    return answer_of(PROGRAM, model, VERL_PLATFORM="cambricon", **simulated_environment("cambricon", 3))


def test_two_replicas_on_the_devices_of_their_trainers(seen):
    assert len(set(seen["addresses"])) == 2
    assert seen["server_devices"] == seen["trainer_devices"]
    assert len(set(seen["server_devices"])) == 2


def test_log_probs_are_the_trainers_after_each_sync(seen):
    assert [step for *_, step in seen["first"]] == [1] * 4
    assert [step for *_, step in seen["second"]] == [2] * 4
    assert {reason for _, reason, _ in seen["first"]} == {"completed"}
    for name in ("gap", "gap_synced", "gap_again"):
        assert seen[name] < TOLERANCE, name


def test_stale_weights_show_in_the_gap(seen):
    assert seen["gap_stale"] > 1e-2


def test_nothing_is_generated_without_the_trainers_weights(seen):
    assert "RolloutNotReadyError" in seen["before_sync"]
    assert "weights" in seen["before_sync"]
    assert "sleeping dropped the weights" in seen["asleep"]


def test_a_tensor_that_the_trainer_does_not_send_ends_the_sync_and_is_named(seen):
    assert "WeightSyncError" in seen["sync_with_a_tensor_missing"]
    assert "model.layers.1.mlp.up_proj.weight" in seen["sync_with_a_tensor_missing"]
    assert "model.layers.1.mlp.up_proj.weight" in seen["after_failed_sync"]


def test_an_unknown_sampling_parameter_reaches_the_caller_by_name(seen):
    assert "beam_width" in seen["unknown_parameter"]


def test_a_standalone_replica_gets_its_weights_through_the_checkpoint_engine(seen, model):
    import torch
    from transformers import AutoModelForCausalLM

    found = seen["standalone"]
    assert found["step"] == 7
    assert found["device"] not in seen["server_devices"]
    module = AutoModelForCausalLM.from_pretrained(model, attn_implementation="sdpa").float()
    prompt = [20, 21, 22]
    with torch.no_grad():
        log_probs = module(torch.tensor([prompt + found["tokens"]])).logits.log_softmax(-1)[0, len(prompt) - 1 : -1]
    assert log_probs.argmax(-1).tolist() == found["tokens"]
    assert log_probs.max(-1).values.tolist() == pytest.approx(found["log_probs"], abs=TOLERANCE)
