# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's Megatron engine on simulated devices, without TransformerEngine, trains as transformers does on the CPU.

The reference computes loss, gradients and AdamW with transformers alone (megatron_cases.py); every case runs verl's
engine on 2 or 4 devices (megatron_program.py). Speed, kernels and a vendor's numerics are not shown here.
"""

import json
from pathlib import Path

import pytest
import replaced_names
import torch
from megatron_cases import CASES, Case
from megatron_runs import DEADLINE_S, reporting, run_cases, write_reference
from platformkit import needs_cpu_torch
from safetensors import safe_open

SHARP = 1e-5
ROUNDED = {"bfloat16": 5e-3, "float16": 1e-3}
BY_NAME = {case.name: case for case in CASES}
# One for each way to share a model (experts: test_experts.py), and bfloat16 with a checkpoint and a value head.
IN_CI = {"tp2-sequence-parallel": 1, "bf16-critic": 1, "pp2": 2, "cp2": 2}


def _param(case: Case):
    return pytest.param(case, marks=[pytest.mark.ci(priority=IN_CI[case.name])] if case.name in IN_CI else [])


every_case = pytest.mark.parametrize(
    "case",
    list(map(_param, CASES)),
    ids=lambda case: case.name,
)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(DEADLINE_S)]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    return write_reference(tmp_path_factory.mktemp("models"), CASES)


@pytest.fixture(scope="module")
def reference(models) -> dict[str, dict]:
    return json.loads((models / "reference.json").read_text())


@pytest.fixture(scope="module")
def results(request, models, tmp_path_factory) -> dict[str, list[dict]]:
    """Every selected case on simulated MLUs, in one program: the imports cost more than the cases."""
    selected = {
        item.callspec.params["case"].name
        for item in request.session.items
        if item.path == request.path and "case" in getattr(item, "fixturenames", ())
    }
    return run_cases(
        "cambricon", models, tmp_path_factory.mktemp("mlu") / "out", [BY_NAME[name] for name in sorted(selected)]
    )


def assert_trains_as(found: dict, expected: list[dict], case: Case) -> None:
    """fp32: every step. Else the first step, then losses only, since AdamW multiplies the rounding of each step."""
    if case.dtype == "float32":
        for step, reference_step in zip(found["steps"], expected, strict=True):
            assert step == pytest.approx(reference_step, rel=SHARP)
        return
    near = ROUNDED[case.dtype]
    assert found["steps"][0] == pytest.approx(expected[0], rel=near)
    assert [step["loss"] for step in found["steps"]] == pytest.approx([step["loss"] for step in expected], rel=4 * near)


@every_case
def test_loss_and_gradient_norm_are_those_of_transformers(case: Case, results, reference):
    """FSDP's engine is among the cases, so that the engines' curves are each other's too."""
    key = f"{case.model} {case.model_type}"
    if key not in reference:
        pytest.skip("its value head starts with random weights")
    assert_trains_as(reporting(results[case.name]), reference[key]["steps"], case)


@every_case
def test_what_is_replaced_is_what_is_declared(case: Case, results):
    wanted = replaced_names.declared(
        "tensordict would wait for another device type than the platform's",  # the CUDA migration shows one
        "strategy=megatron",  # the program loads Megatron for all its cases
        "strategy=megatron without TransformerEngine",
        "strategy=megatron without TransformerEngine and Apex",
        "strategy=megatron with mbridge" if case.strategy == "megatron" else "strategy=fsdp or fsdp2",
    )
    assert len(wanted) > 30
    for rank in results[case.name]:
        assert set(rank["replaced"]["recorded"]) == wanted
        assert set(rank["replaced"]["found"]) <= wanted
        assert "torch.distributed:all_reduce" in rank["replaced"]["found"]


@every_case
def test_exported_weights_are_those_of_the_checkpoint(case: Case, results, models):
    """Names, shapes and values before training, on every rank: what weight sync sends (field report 77)."""
    stored = {}
    with safe_open(models / case.model / "model.safetensors", framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 - it is no mapping
            tensor = file.get_tensor(name)
            if case.strategy == "megatron":
                tensor = tensor.to(getattr(torch, case.dtype))
            stored[name] = [list(tensor.shape), tensor.double().sum().item(), tensor.double().square().sum().item()]
    stored.pop("score.bias", None)  # Megatron's value head has none
    for rank in results[case.name]:
        exported = rank["initial"]
        if case.name == "bf16-critic-tied":  # a new head
            assert exported.pop("score.weight")[0] == [1, 32]
        assert exported.keys() == stored.keys()
        for name, expected in stored.items():
            assert exported[name][0] == expected[0], name
            assert exported[name][1:] == pytest.approx(expected[1:], rel=1e-9), name


@every_case
def test_offload_frees_the_device_and_comes_back(case: Case, results):
    for rank in results[case.name]:
        assert rank["bytes_offloaded"] < 0.1 * rank["bytes_loaded"]
        assert rank["bytes_back"] == pytest.approx(rank["bytes_loaded"], rel=0.05)


@pytest.mark.parametrize(
    "case",
    [_param(case) for case in CASES if case.checkpoint],
    ids=lambda case: case.name,
)
def test_a_checkpoint_restores_and_replays_exactly(case: Case, results):
    """Megatron without TransformerEngine resumes with a wrong optimizer step unless it is mended."""
    for rank in results[case.name]:
        assert rank["restored"]
        assert rank["replayed"]
        assert rank["resumed"]


@pytest.mark.parametrize("vendor", ["enflame", "intel", pytest.param("metax", marks=needs_cpu_torch)])
def test_other_devices_give_the_same_numbers(vendor: str, models, reference, tmp_path):
    """Enflame through its own migration module; Intel has none, and a user may name one; MetaX needs none."""
    environment = {"VERL_HW_CUDA_MIGRATION": "verl_hw_sim.cuda_migration"} if vendor == "intel" else {}
    cases = [BY_NAME["tp2-sequence-parallel"], BY_NAME["bf16-critic"]]
    for name, ranks in run_cases(vendor, models, tmp_path / "out", cases, **environment).items():
        case = BY_NAME[name]
        found = reporting(ranks)
        assert found["engine"].startswith(f"{vendor.capitalize()}MegatronEngineWith")
        assert_trains_as(found, reference[f"{case.model} {case.model_type}"]["steps"], case)
