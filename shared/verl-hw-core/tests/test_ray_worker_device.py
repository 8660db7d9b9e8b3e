# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What takes the place of verl's set-up of a Ray worker: which device is selected, and what is left alone."""

import logging
import os
from types import SimpleNamespace

import pytest
import ray
import verl.plugin.platform
from detectionkit import CAMBRICON

from verl_hw_core import load_report
from verl_hw_core.errors import DeviceAssignmentError, VisibleDevicesError
from verl_hw_core.facts import vendors
from verl_hw_core.platform import AcceleratorPlatform
from verl_hw_core.ray_support import worker_device
from verl_hw_core.ray_support.claims import Claims
from verl_hw_core.ray_support.holding import IDS_ROW, Holding


class MluPlatform(AcceleratorPlatform):
    """Four devices, without a torch that has them."""

    spec = CAMBRICON
    count = 4

    def __init__(self) -> None:
        self.selected: list[int] = []

    def device_count(self) -> int:
        return self.count

    def set_device(self, device_index: int) -> None:
        self.selected.append(device_index)


@pytest.fixture
def setting(monkeypatch, tmp_path):
    """A Ray worker: its platform, what it holds, and what happened."""
    seen = SimpleNamespace(platform=MluPlatform(), holding=None, own=[], told=[])
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(verl.plugin.platform, "get_platform", lambda: seen.platform)
    monkeypatch.setattr(worker_device.holdings, "of_this_actor", lambda names: seen.holding)
    monkeypatch.setattr(worker_device, "_node_claims", lambda: Claims(tmp_path / "devices.json", lambda holder: True))
    monkeypatch.setattr(worker_device, "_bundle", lambda holding: f"{holding.placement_group}/{holding.bundle}")
    monkeypatch.setattr(worker_device, "answer_for_this_worker", seen.told.append)
    for name in ("LOCAL_RANK", "MLU_VISIBLE_DEVICES", "CN_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "")  # so that monkeypatch puts it back
        monkeypatch.delenv(name)
    seen.set_up = lambda: worker_device.set_up.__wrapped__(seen.own.append, "worker")
    return seen


def test_noset_and_a_mask_do_not_put_a_physical_id_into_set_device(setting, monkeypatch):
    monkeypatch.setenv("RAY_EXPERIMENTAL_NOSET_MLU_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("MLU_VISIBLE_DEVICES", "4,5")
    setting.platform.count = 2
    for slot in (0, 1):
        setting.holding = Holding("GPU", 1.0, (slot,), (str(slot),), "CUDA_VISIBLE_DEVICES", "ab", slot)
        setting.set_up()
        assert os.environ["LOCAL_RANK"] == str(slot)
    assert setting.platform.selected == [0, 1]
    assert [told.cards for told in setting.told] == [("4",), ("5",)]
    assert setting.own == []


def test_a_plain_custom_resource_gives_each_bundle_its_device_in_their_order(setting):
    for bundle in (2, 0, 2, 1):
        setting.holding = Holding("MLU", 0.5, None, placement_group="ab", bundle=bundle)
        setting.set_up()
    assert setting.platform.selected == [2, 0, 2, 1]


def test_two_bundles_that_would_share_a_card_are_an_error(setting, monkeypatch):
    # Two actors, each with its own narrower mask from its runtime environment: Ray gives both "4".
    monkeypatch.setenv("MLU_VISIBLE_DEVICES", "4")
    setting.platform.count = 1
    setting.holding = Holding("GPU", 1.0, (0,), ("4",), "MLU_VISIBLE_DEVICES", "ab", 0)
    setting.set_up()
    setting.holding = Holding("GPU", 1.0, (1,), ("4",), "MLU_VISIBLE_DEVICES", "ab", 1)
    with pytest.raises(DeviceAssignmentError, match="would share a card"):
        setting.set_up()


def test_a_runtime_that_dropped_an_entry_is_an_error_with_both_numbers(setting, monkeypatch):
    monkeypatch.setenv("MLU_VISIBLE_DEVICES", "0,1,3,4")
    setting.platform.count = 3
    setting.holding = Holding("GPU", 1.0, (0,), ("0",), None, "ab", 0)
    with pytest.raises(VisibleDevicesError, match="lists 4 devices but the runtime shows 3"):
        setting.set_up()


def test_a_rollout_server_writes_the_variable_that_the_runtime_obeys(setting, monkeypatch):
    assert setting.platform.visible_devices_envvar() == "MLU_VISIBLE_DEVICES"
    monkeypatch.setenv("CN_VISIBLE_DEVICES", "4,5,6,7")
    assert setting.platform.visible_devices_envvar() == "CN_VISIBLE_DEVICES"


def test_a_worker_without_device_selects_none(setting):
    setting.set_up()
    assert (setting.platform.selected, setting.own, setting.told) == ([], [], [])
    assert "LOCAL_RANK" not in os.environ


def test_another_platforms_worker_is_set_up_by_verl_and_one_with_our_chip_says_so(setting, monkeypatch, caplog):
    spec = SimpleNamespace(key="cambricon", distribution="verl-hw-cambricon", ray_resources=("MLU", "GPU"))
    monkeypatch.setattr(vendors, "specs", lambda: (spec,))
    monkeypatch.setattr(load_report, "_problems", [])
    setting.platform = SimpleNamespace(vendor_name="nvidia")
    setting.set_up()
    assert setting.own == ["worker"]
    assert caplog.text == ""
    setting.holding = Holding("MLU", 1.0, None, placement_group="ab", bundle=0)
    with caplog.at_level(logging.WARNING):
        setting.set_up()
    assert setting.own == ["worker", "worker"]
    assert "the worker holds 1 MLU but verl's platform is 'nvidia'" in caplog.text
    assert "Set VERL_PLATFORM=cambricon" in caplog.text


def test_rays_answer_names_the_cards_of_this_worker(monkeypatch):
    from ray.runtime_context import RuntimeContext

    from verl_hw_core import upstream

    monkeypatch.setattr(RuntimeContext, "get_accelerator_ids", lambda context: {"GPU": ["0"], "TPU": []})
    try:
        worker_device.answer_for_this_worker(worker_device.WorkerDevices("MLU", (1,), ("5",)))
        context = RuntimeContext(SimpleNamespace())
        assert context.get_accelerator_ids() == {"GPU": ["0"], "TPU": [], "MLU": ["5"]}
    finally:
        upstream.restore(IDS_ROW)
    assert context.get_accelerator_ids() == {"GPU": ["0"], "TPU": []}
