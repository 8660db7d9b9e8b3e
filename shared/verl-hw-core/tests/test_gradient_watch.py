# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Gradients that do not arrive are named, and lawful zeros are not; the model is on the CPU, where no rank is asked.

With verl's engine on a simulated device: ``tests/field_inputs``, ``test_gradients_that_are_all_zero_stop_the_run``.
"""

import logging
import warnings
from collections import OrderedDict

import pytest
import torch
from torch import nn

from verl_hw_core.errors import GradientError
from verl_hw_core.training.gradients import GradientWatch


class Scaled(torch.autograd.Function):
    """The identity, whose backward multiplies."""

    @staticmethod
    def forward(ctx, values, factor):
        ctx.factor = factor
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor, None


class Model(nn.Module):
    """Three modules in a row; a test puts something of its own between them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.parts = nn.ModuleDict(OrderedDict(first=nn.Linear(4, 4), second=nn.Linear(4, 4), head=nn.Linear(4, 2)))
        self.unused = nn.Linear(4, 4)
        self.after = {}

    def forward(self, values):
        for name, part in self.parts.items():
            values = self.after.get(name, nn.Identity())(values + part(values) if name == "second" else part(values))
        return values


class Training:
    """Steps of a model under a watch, as an engine makes them."""

    def __init__(self, by_module: bool = True) -> None:
        self.model = Model()
        self.watch = GradientWatch([self.model], by_module=by_module)

    def step(self, weight: float = 1.0) -> float:
        self.model.zero_grad()
        with self.watch.warnings_said():
            loss = self.model(torch.ones(3, 4)).square().mean()
            (loss * weight).backward()
        found = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        norm = float(torch.stack([gradient.norm() for gradient in found]).norm()) if found else 0.0
        self.watch.judge(norm)
        self.watch.say_jump(norm, loss.item() * weight)
        return norm


@pytest.fixture
def training() -> Training:
    return Training()


def test_a_sound_model_trains_and_a_module_that_does_not_run_needs_no_gradient(training):
    assert [training.step() > 0 for _ in range(3)] == [True] * 3


@pytest.mark.parametrize("by_module", [True, False])
def test_zeros_after_a_module_are_an_error_that_names_it(by_module):
    training = Training(by_module)
    training.model.after["head"] = lambda values: Scaled.apply(values, 0.0)
    with pytest.raises(GradientError, match=r"in parts\.head,"):
        training.step()


def test_zeros_that_begin_later_are_found_in_the_second_step_of_them(training):
    training.step()
    training.model.after["head"] = lambda values: Scaled.apply(values, 0.0)
    assert training.step() == 0.0
    with pytest.raises(GradientError, match="All gradients are zero"):
        training.step()


def test_zeros_that_begin_at_the_loss_are_lawful(training):
    assert [training.step(weight) > 0 for weight in (0.0, 0.0, 1.0, 0.0, 0.0, 1.0)] == [False, False, True] * 2


def test_modules_behind_an_operator_without_a_backward_are_named(training):
    training.model.after["first"] = torch.Tensor.detach
    with pytest.raises(GradientError, match=r"No gradient reaches parts\.first, which"):
        training.step()


def test_the_module_is_named_though_the_first_gradients_were_lawfully_zero(training):
    training.model.after["first"] = torch.Tensor.detach
    training.step(0.0)
    with pytest.raises(GradientError, match=r"parts\.first"):
        training.step()


def test_hooks_go_after_the_first_step(training):
    training.step()
    assert [len(module._forward_hooks) for module in training.model.modules()] == [1, 0, 0, 0, 0, 0]


@pytest.fixture(scope="module")
def operator_without_backward():
    """An operator that a device's package registered without an autograd kernel."""
    with torch.library._scoped_library("verl_hw_test", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        yield torch.ops.verl_hw_test.twice


def test_torchs_warning_of_a_missing_backward_is_said_though_warnings_are_ignored(
    training, operator_without_backward, caplog
):
    training.model.after["head"] = lambda values: operator_without_backward(values) + values
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "verl_hw_core"):
        warnings.simplefilter("ignore")
        training.step()
    (record,) = [record for record in caplog.records if "verl_hw_test::twice" in record.getMessage()]
    assert "verl-hw check --only operators" in record.getMessage()


def test_other_warnings_go_where_they_went(training):
    training.model.after["head"] = lambda values: (warnings.warn("of somebody", stacklevel=2), values)[1]
    with pytest.warns(UserWarning, match="of somebody"):
        training.step()


@pytest.mark.parametrize(("loss_factor", "said"), [(1.0, True), (1e6, False)])
def test_a_norm_that_jumps_while_the_loss_does_not_is_said(training, caplog, loss_factor, said):
    for _ in range(6):
        training.step()
    training.model.after["head"] = lambda values: Scaled.apply(values, 1e6 / loss_factor)
    with caplog.at_level(logging.WARNING, "verl_hw_core"):
        training.step(loss_factor)
    assert ["gradient norm is" in record.getMessage() for record in caplog.records] == ([True] if said else [])
