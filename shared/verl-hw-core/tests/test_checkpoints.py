# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that was saved on another chip resumes here, with one word about its random state."""

import logging
from types import ModuleType, SimpleNamespace

import pytest
from acme import DEVICE

from verl_hw_core import upstream
from verl_hw_core.training import preparation


@pytest.fixture
def manager(monkeypatch, verl_without_plugins):
    """verl's checkpoint manager with our care, on a platform whose device module notes its RNG state."""
    from verl.plugin.platform import platform_manager
    from verl.utils.checkpoint.checkpoint_manager import BaseCheckpointManager

    module = ModuleType("device")
    module.restored = []
    module.set_rng_state = module.restored.append
    platform = SimpleNamespace(device_name=DEVICE, device_module=module, is_available=lambda: True)
    monkeypatch.setattr(platform_manager, "_current_platform", platform)
    preparation.care_for_checkpoints()
    preparation.care_for_checkpoints()
    yield BaseCheckpointManager, module
    for row in ("checkpoint-rng", "fsdp1-checkpoint-offload"):
        upstream.restore(row)


def host_states() -> dict:
    import random

    import numpy
    import torch

    return {"cpu": torch.get_rng_state(), "numpy": numpy.random.get_state(), "random": random.getstate()}


def test_own_state_is_restored(manager, caplog):
    import torch

    base, module = manager
    states = {**host_states(), DEVICE: "state"}
    expected = torch.rand(3)
    base.load_rng_state(states)
    assert torch.equal(torch.rand(3), expected), "the host's state is verl's to restore"
    assert module.restored == ["state"]
    assert caplog.text == ""


def test_another_chips_state_is_passed_over_with_one_word(manager, caplog):
    base, module = manager
    base.load_rng_state({**host_states(), "cuda": "state"})
    assert module.restored == []
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "saved on cuda" in record.getMessage()


def test_a_state_of_another_layout_is_passed_over_with_one_word(manager, caplog):
    base, module = manager

    def refuse(state):
        raise RuntimeError("RNG state is wrong size")

    module.set_rng_state = refuse
    base.load_rng_state({**host_states(), DEVICE: "state"})
    (record,) = caplog.records
    assert "RNG state is wrong size" in record.getMessage()


def test_fsdp1_shards_are_gathered_on_the_host(manager):
    from verl.utils.checkpoint import fsdp_checkpoint_manager

    assert fsdp_checkpoint_manager.is_cuda_available is True
    upstream.restore("fsdp1-checkpoint-offload")
    assert fsdp_checkpoint_manager.is_cuda_available is False
