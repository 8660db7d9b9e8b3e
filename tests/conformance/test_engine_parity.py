# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's own FSDP engines on simulated devices give the numbers of plain CPU over gloo.

One program run a platform: it imports verl once and forks 2, then 3 ranks, each of which goes through every strategy
and model type. See engine_program.py for what a rank does.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import replaced_names
from machine_speed import scaled
from platformkit import clean_environment, needs_cpu_torch
from tiny_models import write_language_model, write_value_model

from verl_hw_sim import simulated_environment

HERE = Path(__file__).parent
WORLD_SIZES = (2, 3)
VENDORS = {"cambricon": "mlu", "enflame": "gcu", "intel": "xpu", "metax": "cuda"}
DEADLINE_S = 600


def run_program(
    models: Path, out: Path, environment: dict[str, str], world_sizes: tuple[int, ...] = WORLD_SIZES
) -> dict[int, list[dict]]:
    """Run the program and return what each rank wrote, by world size."""
    out.mkdir()
    log = out / "log.txt"
    with log.open("w") as stream:
        finished = subprocess.run(
            [sys.executable, str(HERE / "engine_program.py"), str(models), str(out), *map(str, world_sizes)],
            env=clean_environment(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", PYTHONPATH=str(HERE), **environment),
            stdout=stream,
            stderr=subprocess.STDOUT,
            timeout=scaled(DEADLINE_S),
            check=False,
        )
    errors = "".join(path.read_text() for path in sorted(out.glob("error-*.txt")))
    assert finished.returncode == 0, errors or log.read_text()[-3000:]
    return {
        size: [json.loads((out / f"result-{size}-{rank}.json").read_text()) for rank in range(size)]
        for size in world_sizes
    }


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_language_model(folder / "language_model")
    write_value_model(folder / "value_model")
    return folder


@pytest.fixture(scope="module")
def reference(models, tmp_path_factory):
    """The same program on a plain CPU platform, with verl's own engines and none of ours."""
    environment = {
        "VERL_PLATFORM": "cpu_reference",
        "VERL_USE_EXTERNAL_MODULES": "cpu_reference",
        "VERL_USE_EXTERNAL_PLUGINS": "none",
    }
    return run_program(models, tmp_path_factory.mktemp("reference") / "out", environment)


@pytest.fixture(
    scope="module",
    params=[
        "cambricon",
        pytest.param("enflame", marks=pytest.mark.slow),  # dispatched like cambricon
        "intel",
        pytest.param("metax", marks=[pytest.mark.slow, needs_cpu_torch]),
    ],
)
def simulated(request, models, tmp_path_factory):
    """The vendor's key and what its ranks wrote; verl finds the platform by itself."""
    out = tmp_path_factory.mktemp(request.param) / "out"
    return request.param, run_program(models, out, simulated_environment(request.param, max(WORLD_SIZES)))


def every_rank(simulated, reference):
    """Yield (combination, rank's result, the CPU result of the same world size, rank and model type)."""
    _, runs = simulated
    for size, ranks in runs.items():
        for rank, written in enumerate(ranks):
            for combination, result in written["results"].items():
                model_type = combination.split("-")[1]
                yield combination, result, reference[size][rank]["results"][f"fsdp2-{model_type}"]


def test_platform_engine_and_device_are_the_vendors(simulated):
    key, runs = simulated
    for ranks in runs.values():
        for rank, written in enumerate(ranks):
            assert written["platform"] == key
            for combination, result in written["results"].items():
                head = "ValueHead" if "value" in combination else "LMHead"
                assert result["engine"] == f"{key.capitalize()}FSDPEngineWith{head}"
                assert result["parameter"] == f"{VENDORS[key]}:{rank}"


def test_what_is_replaced_is_what_is_declared(simulated, reference):
    key, runs = simulated
    no_sleep = ["a chip whose vLLM cannot sleep"] if key == "enflame" else []
    wanted = replaced_names.declared("strategy=fsdp or fsdp2", *no_sleep)
    assert len(wanted) > 20
    for written in (one for ranks in runs.values() for one in ranks):
        assert set(written["replaced"]["recorded"]) == wanted
        assert set(written["replaced"]["found"]) <= wanted
        assert "verl.utils.torch_functional:log_probs_from_logits_all_rmpad" in written["replaced"]["found"]
    for ranks in reference.values():
        assert all(written["replaced"] == {"recorded": [], "found": []} for written in ranks)


def test_fsdp2_equals_cpu(simulated, reference):
    compared = 0
    for combination, result, expected in every_rank(simulated, reference):
        if combination.startswith("fsdp2"):
            assert result["inferred"] == pytest.approx(expected["inferred"], rel=1e-9, abs=0)
            for step, expected_step in zip(
                [*result["steps"], result["after_save"]], [*expected["steps"], expected["after_save"]], strict=True
            ):
                assert step == pytest.approx(expected_step, rel=1e-9, abs=0)
            compared += 1
    assert compared == 2 * sum(WORLD_SIZES)


def test_fsdp1_agrees_with_fsdp2_on_cpu(simulated, reference):
    """verl's FSDP1 set-up refuses a CPU, so the reference is FSDP2: the same mathematics in another order of sums."""
    for combination, result, expected in every_rank(simulated, reference):
        if combination.startswith("fsdp-"):
            assert result["inferred"] == pytest.approx(expected["inferred"], rel=1e-5)
            for step, expected_step in zip(result["steps"], expected["steps"], strict=True):
                assert step == pytest.approx(expected_step, rel=1e-4)


def test_exported_parameters_are_the_references(simulated, reference):
    for combination, result, expected in every_rank(simulated, reference):
        assert result["exported"].keys() == expected["exported"].keys()
        tolerance = 1e-9 if combination.startswith("fsdp2") else 1e-3
        for name, sums in expected["exported"].items():
            assert result["exported"][name][1] == pytest.approx(sums[1], rel=tolerance), name


def test_offload_moves_everything_there_and_back(simulated, reference):
    key, _ = simulated
    for _, result, _ in every_rank(simulated, reference):
        assert result["offloaded"] == {"parameters": "cpu", "optimizer": "cpu"}
        assert result["loaded"] == {"parameters": VENDORS[key], "optimizer": VENDORS[key]}


def test_checkpoint_restores_and_replays_exactly(simulated, reference):
    for combination, result, _ in every_rank(simulated, reference):
        assert result["restored"], combination
        assert result["replayed"], combination


def test_fsdp1_shards_are_saved_from_the_host(simulated, reference):
    """verl gathers them on the host for CUDA only: elsewhere saving needs twice the device memory (field report 64)."""
    for combination, result, _ in every_rank(simulated, reference):
        if combination.startswith("fsdp-"):
            assert result["saved_on"] == ["cpu"]


def test_verl_missed_no_name_in_the_device_module(simulated):
    _, runs = simulated
    for ranks in runs.values():
        for written in ranks:
            assert written["missing"] == []


@pytest.mark.slow
@pytest.mark.ci
def test_no_avg_and_late_copies_to_the_host_change_no_number(models, reference, tmp_path):
    """Where AVG is rejected, ours sum and divide (field reports 42 and 45). verl does not wait for what it offloads."""
    environment = simulated_environment("cambricon", 2, limits="avg_rejected,late_host_copies")
    runs = run_program(models, tmp_path / "out", environment, world_sizes=(2,))
    for rank, written in enumerate(runs[2]):
        assert len(written["results"]) == 4
        for combination, result in written["results"].items():
            expected = reference[2][rank]["results"][f"fsdp2-{combination.split('-')[1]}"]
            tolerance = 1e-9 if combination.startswith("fsdp2") else 1e-4
            for step, expected_step in zip(result["steps"], expected["steps"], strict=True):
                assert step == pytest.approx(expected_step, rel=tolerance), combination
            # Parameters and optimizer went to the host and back before these.
            assert result["offloaded"] == {"parameters": "cpu", "optimizer": "cpu"}
            assert result["after_save"] == pytest.approx(expected["after_save"], rel=tolerance), combination
            assert result["restored"], combination
            assert result["replayed"], combination
