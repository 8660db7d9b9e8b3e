# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw check`` names planted faults, each by the right check.

Faults that do not touch each other's checks share a run, since a run costs seconds. test_check.py shows that the same
checks pass where nothing is planted.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from machine_speed import scaled

from verl_hw_tools.conformance import Settings, Status, run
from verl_hw_tools.conformance.runner import survey_devices

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PLANTS = Path(__file__).parent / "check_plants"
WARN, FAIL, CRASH, OK = Status.WARN, Status.FAIL, Status.CRASH, Status.OK


# A run of each kind, with its priority: limits of the simulator, plants, faults that end a process, several ranks.
IN_CI = {"operators": 1, "crash and hang": 1, "SUM is wrong": 1, "names missing": 2}


@dataclass(frozen=True)
class Expected:
    """How a check must end where a fault is planted, and a part of what it must say; ``{}`` is the deadline."""

    check: str
    status: Status
    says: str = ""


@dataclass(frozen=True)
class Scenario:
    """Faults of one run: limits of the simulator and plants."""

    name: str
    expected: tuple[Expected, ...]
    limits: str = ""
    plants: str = ""
    deadline: float = 30.0


SCENARIOS = (
    Scenario(
        "operators",
        limits="deny=aten::topk",
        plants="silu_without_autograd,gelu_with_zero_gradient,bf16_accumulates_in_bf16,fp16_softmax_overflows,"
        "bmm_in_reduced_precision,cross_entropy_gradient_doubled,sdpa_ignores_mask,embedding_wrong_for_strided_weight",
        expected=(
            Expected("operators.embedding.fp32", FAIL, "not contiguous"),
            Expected("operators.bmm.fp32", WARN, "reduced precision"),
            Expected("operators.swiglu.fp32", FAIL, "no working backward"),
            Expected("operators.gelu.fp32", FAIL, "a gradient of zeros"),
            Expected("operators.softmax.fp32", OK),
            Expected("operators.softmax.fp16", FAIL, "result"),
            Expected("operators.sdpa_causal.bf16", OK),
            Expected("operators.sdpa_mask.fp32", FAIL, "result"),
            Expected("operators.cross_entropy.fp32", FAIL, "gradient of logits"),
            Expected("operators.top_k.fp32", FAIL, "topk"),
            Expected("operators.accumulation.bf16", FAIL, "matmul"),
            Expected("operators.accumulation.fp16", OK),
        ),
    ),
    Scenario(
        "crash and hang",
        plants="rms_norm_segfaults,layer_norm_hangs",
        deadline=8.0,
        expected=(
            Expected("operators.rmsnorm.fp32", OK),
            Expected("operators.rms_norm_fused.fp32", CRASH, "SIGSEGV"),
            Expected("operators.layer_norm.fp32", CRASH, "no answer within {:.0f} s"),
            Expected("operators.gelu.fp32", OK),
        ),
    ),
    Scenario(
        "seeds",
        plants="seeds_ignored",
        expected=(
            Expected("rng.manual_seed", FAIL, "after the same seed"),
            Expected("rng.manual_seed_all", FAIL, "device 0"),
            Expected("rng.state_kinds", OK),
        ),
    ),
    Scenario(
        "random state",
        plants="set_rng_state_ignored",
        expected=(
            Expected("rng.manual_seed", OK),
            Expected("rng.state", FAIL, "after set_rng_state"),
            Expected("rng.state_kinds", FAIL, "after set_rng_state"),
            Expected("operators.activation_checkpointing", FAIL, "gradient with recomputation"),
        ),
    ),
    Scenario(
        "random state of each device",
        plants="one_rng_state_for_all_devices",
        expected=(Expected("rng.state", OK), Expected("rng.state_of_each_device", FAIL, "set back device 1")),
    ),
    Scenario(
        "memory",
        limits="raising=memory_allocated",
        plants="free_memory_is_zero",
        expected=(
            Expected("memory.mem_get_info", FAIL, "total memory is 0"),
            Expected("memory.allocated", FAIL, "the simulated driver reports an error"),
            Expected("memory.storage_resize", OK),
        ),
    ),
    Scenario(
        "names missing",
        limits="missing=current_stream,missing=Event,missing=get_rng_state",
        expected=(
            Expected("module.current_stream", WARN, "no current_stream"),
            Expected("module.event_class", WARN, "no Event"),
            Expected("module.get_rng_state", FAIL, "no get_rng_state"),
            Expected("module.set_rng_state", OK),
            Expected("streams.current_stream", FAIL, "current_stream"),
            Expected("streams.event", FAIL, "Event"),
        ),
    ),
    Scenario(
        "no fp64, no byte views",
        limits="no_fp64",
        plants="no_byte_views",
        expected=(
            Expected("dtypes.fp32", OK),
            Expected("dtypes.fp64", WARN, "fp64"),
            Expected("dtypes.bytes.bf16", FAIL, "not supported"),
            Expected("scaler.enabled", WARN, "needs fp64"),
        ),
    ),
    Scenario(
        "scaler",
        plants="scaler_disabled",
        expected=(
            Expected("scaler.enabled", FAIL, "disabled"),
            Expected("scaler.rescues", FAIL, "disabled"),
        ),
    ),
    Scenario(
        "overflow",
        plants="scaler_ignores_overflow",
        expected=(
            Expected("scaler.rescues", OK),
            Expected("scaler.skips", FAIL, "the weights became"),
        ),
    ),
    Scenario(
        "nested tensors and lists of tensors",
        limits="deny=aten::_foreach_norm",
        plants="jagged_copies_to_host_unfinished",
        expected=(
            Expected("optimizer.foreach", FAIL, "_foreach_norm"),
            Expected("optimizer.clip_grad_norm", FAIL, "_foreach_norm"),
            Expected("nested.make", OK),
            Expected("nested.to_host", FAIL, "row 0 of the copy on the host"),
        ),
    ),
    Scenario(
        "jagged operators missing",
        limits="deny=aten::_jagged_to_padded_dense_forward,deny=aten::_padded_dense_to_jagged_forward",
        deadline=120.0,
        expected=(
            Expected("nested.make", OK),
            Expected("nested.padding", WARN, "_jagged_to_padded_dense_forward"),
            Expected("nested.from_padded", WARN, "_padded_dense_to_jagged_forward"),
        ),
    ),
    Scenario(
        "copies",
        plants="strided_copies_to_host_wrong,non_blocking_never_finishes",
        expected=(
            Expected("copies.to_device", OK),
            Expected("copies.to_host", FAIL, "transposed"),
            Expected("copies.non_blocking", FAIL, "there and back"),
        ),
    ),
    Scenario(
        "copies to the host are late",
        limits="late_host_copies",
        expected=(
            Expected("streams.round_trip_pageable", WARN, "copy_ and back without a wait"),
            Expected("streams.round_trip_pinned", WARN, "copy_ and back without a wait"),
            Expected("streams.activation_offload", OK),
            Expected("copies.non_blocking", OK),
            Expected("copies.pinned", OK),
        ),
    ),
    Scenario(
        "selection",
        plants="set_device_ignored",
        expected=(
            Expected("selection.current_device", FAIL, "current_device() is 0"),
            Expected("selection.tensors", FAIL, "is on 0"),
            Expected("selection.ranks", FAIL, "[0, 0]"),
        ),
    ),
    Scenario(
        "AVG is refused",
        limits="avg_rejected",
        expected=(
            Expected("collectives.all_reduce.sum", OK),
            Expected("collectives.all_reduce.avg", WARN, "refused"),
            Expected("collectives.reduce_scatter.avg", WARN, "refused"),
        ),
    ),
    Scenario(
        "AVG divides twice",
        limits="avg_wrong",
        expected=(
            Expected("collectives.all_reduce.avg", WARN, "AVG of 1 fp32"),
            Expected("collectives.reduce_scatter.avg", WARN, "AVG of reduce_scatter of 1 fp32"),
            Expected("collectives.all_reduce.sum", OK),
        ),
    ),
    Scenario(
        "SUM is wrong",
        limits="sum_wrong",
        expected=(
            Expected("collectives.all_reduce.sum", FAIL, "SUM of 1 fp32"),
            Expected("collectives.reduce_scatter.sum", FAIL, "reduce_scatter of 1 fp32"),
            Expected("training.fsdp2", FAIL),
        ),
    ),
    Scenario(
        "collectives",
        limits="hang=all_to_all_single",
        plants="broadcast_from_another_root,all_gather_reversed,asynchronous_all_reduce_returns_early,"
        "scatter_segfaults_on_rank_1,gather_raises_on_rank_0,groups_reduce_over_everybody",
        deadline=12.0,
        expected=(
            Expected("collectives.all_reduce.async", FAIL, "after wait()"),
            Expected("collectives.group.subgroup", FAIL, "SUM over ranks"),
            Expected("collectives.broadcast", FAIL, "broadcast of fp32 from 0"),
            Expected("collectives.all_gather.tensor", FAIL, "all_gather_into_tensor of 1 fp32"),
            Expected("collectives.gather", FAIL, "out of resources"),
            Expected("collectives.scatter", CRASH, "SIGSEGV"),
            Expected("collectives.all_to_all.single", CRASH, "no answer within {:.0f} s"),
            Expected("collectives.objects", OK),
        ),
    ),
    Scenario(
        "asynchronous work",
        plants="asynchronous_all_reduce_never_completes",
        deadline=8.0,
        expected=(
            Expected("collectives.all_reduce.sum", OK),
            Expected("collectives.all_reduce.async", CRASH, "in wait"),
        ),
    ),
    Scenario(
        "checkpoints",
        plants="checkpoint_restores_nothing,optimizer_state_not_restored",
        expected=(
            Expected("checkpoints.fsdp2_distributed", FAIL, "after loading"),
            Expected("checkpoints.fsdp2", FAIL, "one step after loading"),
        ),
    ),
)


@pytest.fixture(scope="module")
def survey():
    """The devices and checks; every run sees the same, so it is made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERL_HW_SIM", "cambricon:2")
        return survey_devices()


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(one, marks=[pytest.mark.ci(priority=IN_CI[one.name])] if one.name in IN_CI else [], id=one.name)
        for one in SCENARIOS
    ],
)
def test_planted_faults_are_named(scenario, survey, monkeypatch):
    monkeypatch.setenv("VERL_HW_SIM", "cambricon:2")
    monkeypatch.setenv("VERL_HW_SIM_LIMITS", scenario.limits)
    monkeypatch.setenv("VERL_HW_TEST_PLANTS", scenario.plants)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PLANTS), os.environ.get("PYTHONPATH", "")]))
    wanted = tuple(expected.check for expected in scenario.expected)
    deadline = scaled(scenario.deadline)
    report = run(Settings(only=wanted, deadline=deadline), survey=survey)
    results = {result.id: result for result in report.results}
    found = {name: (result.status, result.observed) for name, result in results.items()}
    assert {name: status for name, (status, _) in found.items()} == {
        expected.check: expected.status for expected in scenario.expected
    }, found
    for expected in scenario.expected:
        assert expected.says.format(deadline) in results[expected.check].observed, found
        if expected.status is not OK:
            assert results[expected.check].blocks
    assert report.passed is not any(expected.status.is_bad for expected in scenario.expected)
