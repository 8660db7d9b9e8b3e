# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Visibility masks. Each case is a fork: the mask is read once."""

import os

import torch
from checks import in_fork, raises

from verl_hw_sim.simulation import active_simulation

SIMULATION = active_simulation()
D = SIMULATION.profile.device_name
MODULE = getattr(torch, D)
VARIABLES = SIMULATION.profile.mask_variables


def _visible_with(**masks):
    os.environ.update(masks)
    return [MODULE.get_device_properties(ordinal).uuid for ordinal in range(MODULE.device_count())]


def _expect(physical_ids, **masks):
    def case():
        assert not SIMULATION.native.started()
        assert _visible_with(**masks) == [SIMULATION.profile.uuid(number) for number in physical_ids], masks
        assert MODULE.is_available() == bool(physical_ids)

    in_fork(case)


def check_ordinals_follow_the_mask():
    mask = VARIABLES[0]
    _expect([0, 1])
    _expect([1], **{mask: "1"})
    _expect([0, 1] if SIMULATION.profile.ascending_mask else [1, 0], **{mask: " 1 , 0"})
    _expect([0], **{mask: "0,0"})
    _expect([0], **{mask: "0,7,1"})
    _expect([1], **{mask: SIMULATION.profile.uuid(1)})
    _expect([], **{mask: "NoDevFiles"})
    if SIMULATION.profile.subdevice_mask:
        _expect([0, 1], **{mask: "0.0,0.1,1.0"})


def check_the_first_variable_wins():
    if len(VARIABLES) > 1:
        _expect([1], **{VARIABLES[1]: "1"})
        _expect([0], **{VARIABLES[0]: "0", VARIABLES[1]: "1"})


def check_a_selector_counts_what_the_mask_leaves():
    selector = SIMULATION.profile.selector_variable
    if selector is None:
        return
    _expect([1], **{selector: "level_zero:1"})
    _expect([0, 1], **{selector: "*:gpu"})
    _expect([0, 1], **{selector: "opencl:cpu;level_zero:1, 0"})
    _expect([1], **{selector: "level_zero:0", VARIABLES[0]: "1"})
    _expect([], **{selector: "level_zero:1", VARIABLES[0]: "1"})
    _expect([], **{selector: "opencl:gpu"})


def check_the_mask_freezes_at_first_use():
    def case():
        torch.manual_seed(1)  # is no use of the runtime
        os.environ[VARIABLES[0]] = "1"
        assert MODULE.device_count() == 1
        os.environ[VARIABLES[0]] = "0,1"
        assert MODULE.device_count() == 1

    in_fork(case)


def check_no_device():
    def case():
        os.environ[VARIABLES[0]] = ""
        assert MODULE.device_count() == 0
        assert not MODULE.is_available()
        assert not torch.accelerator.is_available()
        assert torch.accelerator.device_count() == 0
        raises(RuntimeError, lambda: torch.ones(1, device=D), "sees 0 simulated")
        raises(RuntimeError, lambda: torch.ones(1).to(D), "sees 0 simulated")
        raises(RuntimeError, lambda: torch.ones(1).to(f"{D}:0"), "sees 0 simulated")
        raises(RuntimeError, lambda: MODULE.set_device(0), "sees 0 simulated")
        raises(RuntimeError, lambda: torch.Generator(device=D), "sees 0 simulated")
        raises(RuntimeError, MODULE.get_device_name, "sees 0 simulated")
        raises(RuntimeError, MODULE.current_stream, "sees 0 simulated")
        torch.manual_seed(0)
        MODULE.manual_seed_all(0)
        MODULE.empty_cache()
        assert len(MODULE.default_generators) == 0
        x = torch.ones(2, requires_grad=True)
        (x * 2).sum().backward()  # the CPU goes on working
        assert torch.ones(2).tolist() == [1, 1]

    in_fork(case)
