# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a vendor's CUDA migration: code written for CUDA runs on the simulated device."""

import os
import subprocess
import sys

import pytest
from machine_speed import scaled

from verl_hw_sim import simulated_environment

MODULES = {"cambricon": "torch_mlu.utils.gpu_migration", "enflame": "torch_gcu.transfer_to_gcu"}
DEVICES = {"cambricon": "mlu", "enflame": "gcu"}

PROGRAM = """
import importlib, torch
before = torch.cuda.is_available()
importlib.import_module({module!r})
importlib.import_module("verl_hw_sim.cuda_migration").migrate({device!r})  # a second time: nothing happens
assert not before and torch.cuda.is_available() and torch.cuda.device_count() == 2
for tensor in (
    torch.zeros(2, device="cuda"), torch.ones(2).cuda(), torch.ones(2).to("cuda:0"),
    torch.empty(2, device=torch.device("cuda", 0)),
    torch.nn.Linear(2, 2).cuda().weight, torch.ones(2, device="cuda").new_zeros(3), torch.cuda.FloatTensor([1.0]),
):
    assert tensor.device.type == {device!r} and tensor.is_cuda, tensor
half = torch.ones(2, device="cuda", dtype=torch.bfloat16)
assert half.type() == "torch.cuda.BFloat16Tensor"
assert isinstance(half, torch.cuda.BFloat16Tensor) and not isinstance(half, torch.cuda.FloatTensor)
assert not torch.ones(2).is_cuda and torch.ones(2).type() == "torch.FloatTensor"
torch.cuda.set_device("cuda:1")
assert torch.cuda.current_device() == 1 == getattr(torch, {device!r}).current_device()
with torch.cuda.stream(torch.cuda.Stream(device="cuda")):
    torch.cuda.current_stream().synchronize()
state = torch.cuda.get_rng_state(device="cuda")
first = torch.rand(4, device="cuda")
torch.cuda.set_rng_state(state, device="cuda")
assert torch.equal(first, torch.rand(4, device="cuda"))
with torch.device("meta"):
    assert torch.empty(2).is_meta and torch.nn.Linear(2, 2).weight.is_meta
torch.cuda.nvtx.range_push("block")
torch.cuda.nvtx.range_pop()
assert len(torch.cuda.default_generators) == 2
"""


@pytest.mark.parametrize("vendor", MODULES)
def test_torch_cuda_means_the_simulated_device(vendor):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.format(module=MODULES[vendor], device=DEVICES[vendor])],
        env={**os.environ, **simulated_environment(vendor, 2)},
        capture_output=True,
        text=True,
        timeout=scaled(240),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_without_a_simulation_it_is_an_error():
    environment = {name: value for name, value in os.environ.items() if name != "VERL_HW_SIM"}
    done = subprocess.run(
        [sys.executable, "-c", "import verl_hw_sim.cuda_migration"],
        env=environment, capture_output=True, text=True, timeout=scaled(240), check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "NotSimulatingError" in done.stderr
