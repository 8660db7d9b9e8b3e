# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a replica's server is given of the worker that it stands beside."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from detectionkit import METAX

SPEC = replace(METAX, launch_env=(("MACA_MPS_MODE", "1"),))


@pytest.fixture
def describe_worker(verl_without_plugins, monkeypatch):
    from verl_hw_core.rollout import replica

    platform = SimpleNamespace(
        spec=SPEC,
        visible_devices_envvar=lambda: SPEC.visible_devices_envvar,
        ray_noset_envvars=lambda: ["RAY_EXPERIMENTAL_NOSET_X"],
        rollout_env_vars=lambda: {"FROM_ROLLOUT": "1"},
    )
    monkeypatch.setattr(replica, "get_platform", lambda: platform)
    monkeypatch.setattr(replica.ray, "get_runtime_context", lambda: SimpleNamespace(get_node_id=lambda: "node"))
    return replica.describe_worker


def test_the_server_has_the_workers_device_and_switches(describe_worker, monkeypatch):
    for name, value in {
        SPEC.visible_devices_envvar: "5,4",
        "LOCAL_RANK": "1",
        "MACA_MPS_MODE": "0",
        "VERL_HW_MODEL_PATCHES": "off",
        "RAY_EXPERIMENTAL_NOSET_X": "0",
    }.items():
        monkeypatch.setenv(name, value)
    place = describe_worker(None)
    assert (place.node_id, place.ordinal) == ("node", 1)
    wanted = {
        SPEC.visible_devices_envvar: "5,4",
        "VERL_PLATFORM": SPEC.key,
        "MACA_MPS_MODE": "0",
        "VERL_HW_MODEL_PATCHES": "off",
        "RAY_EXPERIMENTAL_NOSET_X": "1",
        "FROM_ROLLOUT": "1",
    }
    assert {name: place.environment.get(name) for name in wanted} == wanted
