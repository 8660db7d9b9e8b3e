# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts train in verl's engines on simulated devices as transformers alone does on the CPU.

Three families (plain, with a shared expert, with latent attention and groups) in three engines, on three simulated
devices: loss, gradient norm, export, and the sync into the bring-up rollout; or a refusal by name. The cells of one
device are one program (megatron_program.py).
"""

import json
import os
from pathlib import Path

import pytest
from megatron_cases import ENGINES, EXPERTS, FAMILIES, REPLAY, Case
from megatron_runs import DEADLINE_S, reporting, run_cases, write_reference

TOLERANCE = 1e-6
BY_NAME = {case.name: case for case in EXPERTS}
REFUSED = {"deepseek_v3-megatron": "MegatronArchitectureError: mbridge's bridge of deepseek_v3 cannot be built"}
IN_CI = {("cambricon", f"qwen2_moe-{engine}") for engine in ("fsdp2", "megatron")}
DEVICES = {
    "cambricon": {},
    "enflame": {},
    "intel": {"VERL_HW_CUDA_MIGRATION": "verl_hw_sim.cuda_migration"},  # Megatron's CUDA is a vendor's module there
}

RECORD = Path(__file__).with_name("experts_matrix.json")
"""What each cell ended with; docs/support.md has it as a table. RECORD_EXPERTS=1 writes the cells that run."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(DEADLINE_S)]

every_cell = pytest.mark.parametrize(
    ("vendor", "name"),
    [
        pytest.param(vendor, name, marks=[pytest.mark.ci] if (vendor, name) in IN_CI else [])
        for vendor in DEVICES
        for name in (f"{family}-{engine}" for family in FAMILIES for engine in ENGINES)
    ],
)


@pytest.fixture(scope="module")
def selected(request) -> dict[str, list[Case]]:
    """The cells that this session is to run, by device."""
    found: dict[str, dict[str, Case]] = {}
    for item in request.session.items:
        if item.path == request.path and "vendor" in (given := item.callspec.params):
            found.setdefault(given["vendor"], {})[given["name"]] = BY_NAME[given["name"]]
    return {vendor: list(cells.values()) for vendor, cells in found.items()}


@pytest.fixture(scope="module")
def models(selected, tmp_path_factory) -> Path:
    return write_reference(tmp_path_factory.mktemp("models"), [case for cells in selected.values() for case in cells])


@pytest.fixture(scope="module")
def reference(models) -> dict[str, dict]:
    return json.loads((models / "reference.json").read_text())


@pytest.fixture(scope="module")
def ran(selected, models, tmp_path_factory):
    """Return a function that gives what each rank of a cell wrote; a device's cells run when the first is asked for."""
    results: dict[str, dict[str, list[dict]]] = {}

    def of(vendor: str, name: str) -> list[dict]:
        if vendor not in results:
            out = tmp_path_factory.mktemp(vendor) / "out"
            results[vendor] = run_cases(vendor, models, out, selected[vendor], **DEVICES[vendor])
        return results[vendor][name]

    return of


@every_cell
def test_three_steps_are_those_of_transformers_on_the_cpu(vendor, name, ran, reference):
    ranks = ran(vendor, name)
    if name in REFUSED:
        assert all(rank["refused"].startswith(REFUSED[name]) for rank in ranks)
        assert all("actor.strategy=fsdp2" in rank["refused"] for rank in ranks)
        return
    found, expected = reporting(ranks), reference[f"{BY_NAME[name].model} language_model"]
    assert found["engine"].startswith(vendor.capitalize())
    assert len(found["steps"]) == len(expected["steps"]) > 3
    for step, wanted in zip(found["steps"], expected["steps"], strict=True):
        assert step == pytest.approx(wanted, rel=TOLERANCE, abs=TOLERANCE)


@every_cell
def test_the_trained_weights_are_exported_under_the_checkpoints_names(vendor, name, ran, reference):
    if name in REFUSED:
        pytest.skip("refused")
    expected = reference[f"{BY_NAME[name].model} language_model"]["trained"]
    for rank in ran(vendor, name):
        assert rank["last"].keys() == expected.keys()
        for key, (shape, _, squares) in expected.items():
            assert rank["last"][key][0] == shape, key
            assert rank["last"][key][2] == pytest.approx(squares, rel=TOLERANCE, abs=TOLERANCE), key


@every_cell
def test_the_bringup_rollout_computes_what_was_trained(vendor, name, ran, reference):
    if name in REFUSED:
        pytest.skip("refused")
    expected = reference[f"{BY_NAME[name].model} language_model"]["trained_logits"]
    for rank in ran(vendor, name):
        for row, wanted in zip(rank["synced_logits"], expected, strict=True):
            assert row == pytest.approx(wanted, rel=TOLERANCE, abs=10 * TOLERANCE)


@every_cell
def test_the_recorded_matrix_is_what_ran(vendor, name, ran, reference):
    ranks = ran(vendor, name)
    if "refused" in ranks[0]:
        found = {"trains": False, "error": ranks[0]["refused"].partition(":")[0]}
    else:
        wanted = reference[f"{BY_NAME[name].model} language_model"]["steps"]
        worst = max(
            abs(step[key] - right[key]) / right[key]
            for step, right in zip(reporting(ranks)["steps"], wanted, strict=True)
            for key in right
        )
        found = {"trains": True, "off_by": float(f"{worst:.1g}")}
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if os.environ.get("RECORD_EXPERTS"):
        record.setdefault(name, {})[vendor] = found
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    assert record[name][vendor]["trains"] == found["trains"]


@pytest.mark.parametrize(("vendor", "name"), [pytest.param("cambricon", REPLAY.name, marks=pytest.mark.ci)])
def test_router_replay_records_and_replays(vendor, name, ran, reference):
    """With ``router_replay.mode=R2``; the step goes to other experts than the router would choose."""
    ranks, expected = ran(vendor, name), reference[name]
    assert reporting(ranks)["steps"][0] == pytest.approx(
        {key: expected[key] for key in ("loss", "grad_norm")}, rel=TOLERANCE, abs=TOLERANCE
    )
    # The ranks share the sequences, in order.
    assert unordered(route for rank in ranks for route in rank["routes"]) == unordered(expected["routes"])


def unordered(routes) -> list:
    """Routes by sequence, token and layer, whichever of a token's experts is named first."""
    return [[[sorted(layer) for layer in token] for token in sequence] for sequence in routes]
