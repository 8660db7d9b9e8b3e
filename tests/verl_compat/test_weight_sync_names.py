# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which checkpoint engines verl finds: ours on our platforms, in any process, and verl's own elsewhere."""

import pytest

LOOK = """
import asyncio, inspect
import verl.checkpoint_engine as checkpoint
from verl.checkpoint_engine.base import CheckpointEngine
registry = checkpoint.CheckpointEngineRegistry
ours = {}
for name, engine in registry._registry.items():
    if engine.__module__.startswith("verl_hw_core"):
        ours[name] = [engine.__name__, engine.backend_name(), sorted(engine.__abstractmethods__), engine.wire_format]
asynchronous = None
if "nccl" in ours:
    engine = registry.get("nccl")
    sends, receives = engine.send_weights, engine.receive_weights
    asynchronous = [inspect.iscoroutinefunction(sends), inspect.isasyncgenfunction(receives)]
    worker = registry.new("nccl", bucket_size=1 << 20, rebuild_group=True, group_name="actor_rollout")
    metadata = registry.new("nccl", is_master=True, bucket_size=1 << 20, address="127.0.0.1").prepare()
    trainer, rollout = engine.build_topology(1, 1, [metadata, worker.prepare()])
    topology = [trainer["rank"], rollout["rank"], len(trainer["endpoint"])]
else:
    topology = None
try:
    registry.get("hccl"); unknown = ""
except (KeyError, ValueError) as error:  # KeyError in 0.9.0
    unknown = str(error)
answer(ours=ours, asynchronous=asynchronous, topology=topology, unknown=unknown, vllm="vllm" in sys.modules,
       verl=__import__("verl").__version__)
"""
NAMES = {
    "cambricon": {"cncl": "cncl", "nccl": "cncl", "gloo": "gloo", "flagcx": "flagcx"},
    "enflame": {"eccl": "eccl", "nccl": "eccl", "gloo": "gloo", "flagcx": "flagcx"},
    "intel": {"xccl": "xccl", "nccl": "xccl", "gloo": "gloo"},
    "metax": {"nccl": "nccl", "gloo": "gloo", "flagcx": "flagcx"},
}


@pytest.mark.parametrize("vendor", NAMES)
def test_a_driver_without_vllm_device_or_setting_finds_the_engines(forks, vendor):
    seen = forks.run(LOOK, env={"VERL_PLATFORM": vendor})
    assert {name: backend for name, (_, backend, _, _) in seen["ours"].items()} == NAMES[vendor]
    for _, _, missing, wire_format in seen["ours"].values():
        assert missing == []
        assert wire_format == "named_tensors"
    assert seen["asynchronous"] == [True, True]
    assert seen["topology"] == [[0], [1], 1]
    assert not seen["vllm"]
    assert "hccl" in seen["unknown"]


def test_other_platforms_keep_verls_own(forks):
    assert forks.run(LOOK, env={"VERL_PLATFORM": "nvidia"})["ours"] == {}


def test_verl_0_9_0(forks, other_verl):
    seen = forks.run(LOOK, first=[other_verl("0.9.0")], env={"VERL_PLATFORM": "cambricon"})
    assert seen["verl"].startswith("0.9.0")
    assert set(seen["ours"]) == set(NAMES["cambricon"])
    assert seen["topology"] == [[0], [1], 1]
