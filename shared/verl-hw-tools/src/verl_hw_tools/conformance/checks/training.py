# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``training``: a few steps of a tiny model under FSDP and FSDP2, compared with the same training on the CPU."""

from functools import partial
from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.checks._sharded import Wrap, fsdp1, fsdp2, train
from verl_hw_tools.conformance.checks._tiny_model import build, train_on_cpu
from verl_hw_tools.conformance.numerics import require_close
from verl_hw_tools.conformance.registry import Check, add
from verl_hw_tools.conformance.verdicts import CheckFailed, CheckSkipped, CheckWarned, require

# Three steps of AdamW lie between the rounding of an operator and the parameters.
_FACTOR = 50.0
_CHANGE = 0.3


def _compare(bench: Bench, wrap: Wrap, dtype: Any) -> str:
    found, wanted = train(bench, wrap), train_on_cpu(bench.world_size)
    factor = _FACTOR if dtype is torch.float32 else 1.0
    for what, values, references in (
        ("loss of step", found.losses, wanted.losses),
        ("gradient norm of step", found.norms, wanted.norms),
    ):
        got, reference = (torch.tensor(numbers, dtype=torch.float64) for numbers in (values, references))
        require_close(got, reference, dtype, what, factor=factor if "loss" in what else 4 * factor)
    require(found.parameters.keys() == wanted.parameters.keys(), f"{sorted(found.parameters)}", "the model's names")
    if dtype is torch.float32:
        for name, reference in wanted.parameters.items():
            require_close(found.parameters[name], reference, dtype, f"{name} after training", factor=4 * factor)
        return ""
    return _compare_changes(found.parameters, wanted.parameters)


def _compare_changes(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Compare the change of each parameter as a whole: Adam makes a full step of a tiny gradient's rounding error."""
    largest = 0.0
    for name, start in build().named_parameters():
        change = (wanted[name] - start.detach()).norm().item()
        error = (found[name].double() - wanted[name]).norm().item() / change
        require(
            error <= _CHANGE, f"the change of {name} is off by {error:.2g} of its length", f"at most {_CHANGE} of it"
        )
        largest = max(largest, error)
    return f"the changes of the parameters are off by {largest:.2g} of their length"


def _check(wrap: Wrap, dtype: Any, hybrid: bool, native: bool) -> Any:
    def run(bench: Bench) -> str:
        if hybrid and bench.world_size % 2:
            raise CheckSkipped(f"needs an even number of processes, there are {bench.world_size}")
        if not native:
            return _compare(bench, wrap, dtype)
        try:
            return _compare(bench, wrap, dtype)
        except CheckFailed as failure:
            raise CheckWarned(failure.observed, failure.expected) from failure
        except (RuntimeError, NotImplementedError, ValueError) as error:
            raise CheckWarned(
                f"{type(error).__name__}: {error}".partition("\n")[0], "training as on the CPU"
            ) from error

    return run


_NATIVE = "native averages in FSDP2; verl-hw switches to sum-then-divide"
_F32, _B16 = torch.float32, torch.bfloat16
# Name, title, what it blocks, wrapper, type, hybrid, native.
_KINDS: tuple[tuple[str, str, str, Wrap, Any, bool, bool], ...] = (
    ("fsdp1", "FSDP1", "training with strategy fsdp", fsdp1, _F32, False, False),
    (
        "fsdp1_bf16",
        "FSDP1 in bf16",
        "training with strategy fsdp in bf16",
        partial(fsdp1, low=_B16),
        _B16,
        False,
        False,
    ),
    ("fsdp2", "FSDP2 (sum, then divide)", "training with strategy fsdp2", fsdp2, _F32, False, False),
    (
        "fsdp2_bf16",
        "FSDP2 in bf16",
        "training with strategy fsdp2 in bf16",
        partial(fsdp2, low=_B16),
        _B16,
        False,
        False,
    ),
    (
        "fsdp2_offload",
        "FSDP2 with parameters on the host",
        "fsdp2 with offload_policy",
        partial(fsdp2, offload=True),
        _F32,
        False,
        False,
    ),
    ("fsdp2_native", "FSDP2 with the library's average", _NATIVE, partial(fsdp2, native=True), _F32, False, True),
    ("hsdp1", "HSDP, strategy fsdp", "fsdp with fsdp_size", partial(fsdp1, hybrid=True), _F32, True, False),
    ("hsdp2", "HSDP, strategy fsdp2", "fsdp2 with fsdp_size", partial(fsdp2, hybrid=True), _F32, True, False),
    (
        "hsdp2_native",
        "HSDP, strategy fsdp2, with the library's average",
        _NATIVE,
        partial(fsdp2, hybrid=True, native=True),
        _F32,
        True,
        True,
    ),
)
for _name, _title, _blocks, _wrap, _dtype, _hybrid, _native in _KINDS:
    add(
        Check(
            id=f"training.{_name}",
            title=f"{_title}: losses, gradient norms and parameters are those of the CPU",
            blocks=_blocks,
            run=_check(_wrap, _dtype, _hybrid, _native),
            processes=4 if _hybrid else 2,
        )
    )
