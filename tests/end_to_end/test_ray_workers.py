# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's worker groups on a real Ray with simulated devices: which device each worker has, by the device's own word."""

import json
from pathlib import Path
from typing import Any

import pytest
from machine_speed import scaled
from platformkit import needs_cpu_torch
from raykit import answer_of

from verl_hw_sim import simulated_environment

PROGRAM = Path(__file__).parent / "ray_workers_program.py"
SECONDS = 600

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 60)]


def ask(scenario: str, options: dict[str, Any], **environment: str) -> dict[str, Any]:
    return answer_of(PROGRAM, scenario, json.dumps(options), seconds=SECONDS, **environment)


def cards(vendor: str, ids: list[int]) -> set[str]:
    """Uuids of simulated cards, whose last part is the physical id."""
    return {f"{vendor}:{card}" for card in ids}


def card(vendor: str, witness: dict[str, Any]) -> str:
    return f"{vendor}:{int(witness['card'].rsplit('-', 1)[1], 16)}"


def check_one_node(vendor: str, resource: str, visible: list[int], found: dict[str, Any]) -> None:
    """Every card once a bundle, the roles of a bundle on one card, a restart on the same card, refusals in seconds."""
    assert found["resource"] == resource
    first, second, (beside,), (without,) = (found[name] for name in ("first", "second", "beside", "without"))
    used = [card(vendor, witness) for witness in (*first, beside)]
    assert len(set(used)) == 3
    assert set(used) == cards(vendor, visible)
    assert [card(vendor, one) for one in second] == [card(vendor, one) for one in first]
    for witness in (*first, *second, beside, found["restarted"]):
        assert witness["written"] == [witness["ordinal"]], "a tensor without an ordinal went to another card"
        assert witness["environment"]["LOCAL_RANK"] == str(witness["ordinal"])
        assert witness["ids"] == [card(vendor, witness).partition(":")[2]], "a rollout server would get another card"
        assert witness["platform"] == vendor
    assert "card" not in without
    assert without["environment"]["LOCAL_RANK"] == "0"
    assert found["restarted"]["pid"] != first[1]["pid"]
    assert card(vendor, found["restarted"]) == card(vendor, first[1])
    for refusal in (found["too_many"], found["manager"]):
        assert refusal["error"] == "RayResourcesError"
        assert refusal["seconds"] < scaled(20)
        assert f"0 of 3 {resource} free" in refusal["text"]


@pytest.mark.ci
def test_a_plain_custom_resource_on_stock_ray():
    found = ask(
        "one_node",
        {"ray": {"resources": {"MLU": 3}}},
        MLU_VISIBLE_DEVICES="3,1,2",
        **simulated_environment("cambricon", 4),
    )
    check_one_node("cambricon", "MLU", [3, 1, 2], found)


@pytest.mark.parametrize(
    ("vendor", "options", "resource", "visible", "environment"),
    [
        ("cambricon", {"num_gpus": 3}, "GPU", [2, 3, 1], {"CN_VISIBLE_DEVICES": "2,3,1", "MLU_VISIBLE_DEVICES": "0"}),
        ("enflame", {"num_gpus": 3}, "GPU", [0, 1, 2], {}),
        (
            "enflame",
            {"resources": {"GCU": 3}},
            "GCU",
            [3, 0, 2],
            {"RAY_custom_unit_instance_resources": "GCU", "TOPS_VISIBLE_DEVICES": "3,0,2"},
        ),
        ("intel", {"num_gpus": 3}, "GPU", [3, 1, 2], {"ZE_AFFINITY_MASK": "3,1,2"}),
        ("intel", {"num_gpus": 3}, "GPU", [0, 2, 3], {"ONEAPI_DEVICE_SELECTOR": "level_zero:0,2,3"}),
        pytest.param(
            "metax",
            {"num_gpus": 3},
            "GPU",
            [3, 1, 2],
            {"MACA_VISIBLE_DEVICES": "3,1,2", "CUDA_VISIBLE_DEVICES": "0,1,2"},
            marks=needs_cpu_torch,
        ),
        pytest.param(
            "metax", {"num_gpus": 3}, "GPU", [3, 1, 2], {"CUDA_VISIBLE_DEVICES": "3,1,2"}, marks=needs_cpu_torch
        ),
    ],
)
def test_each_vendor_in_each_form(vendor, options, resource, visible, environment):
    found = ask("one_node", {"ray": options}, **environment, **simulated_environment(vendor, 4))
    check_one_node(vendor, resource, visible, found)


def test_two_nodes_of_a_cluster_that_ran_before():
    driver = {**simulated_environment("intel", 4), "VERL_PLATFORM": "xpu", "VERL_HW_MODEL_PATCHES": "off"}
    nodes = [{"ZE_AFFINITY_MASK": "3,1"}, {"ZE_AFFINITY_MASK": "0,2"}]
    found = ask("two_nodes", {"ray": {"num_gpus": 2}, "nodes": nodes, "driver": driver})
    by_node: dict[str, set[str]] = {}
    for witness in found["workers"]:
        by_node.setdefault(witness["node"], set()).add(card("intel", witness))
        assert witness["written"] == [witness["ordinal"]]
    assert sorted(map(sorted, by_node.values())) == [["intel:0", "intel:2"], ["intel:1", "intel:3"]]
    # Ray leaves the node's mask alone, so that oneCCL sees all cards.
    assert {witness["environment"]["ZE_AFFINITY_MASK"] for witness in found["workers"]} == {"3,1", "0,2"}
    assert found["driver"] == "intel"
    for actor in (found["cpu_actor"], *found["workers"]):
        assert actor["platform"] == "intel"
        assert actor["environment"]["VERL_PLATFORM"] == "intel"
        assert actor["environment"]["VERL_HW_MODEL_PATCHES"] == "off"


def test_a_cluster_that_counts_no_device_is_an_error_in_seconds():
    found = ask("neither", {}, **simulated_environment("cambricon", 2))
    assert found["error"] == "RayResourcesError"
    assert found["seconds"] < scaled(20)
    assert "ray start --num-gpus=2" in found["text"]
    assert """ray start --resources='{"MLU": 2}'""" in found["text"]
