# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""One operator, or a few as a model uses them, on the device and in float64 on the CPU: results and gradients."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import REDUCED_FP32, SHORT_NAMES, TOLERANCES, deviation
from verl_hw_tools.conformance.registry import Check, CheckFunction, add
from verl_hw_tools.conformance.verdicts import CheckFailed, CheckWarned

Inputs = dict[str, Any]

FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True, kw_only=True)
class OperatorCase:
    """An operator to check.

    Attributes:
        name: Part of the check's id.
        title: What it is.
        blocks: What of verl needs it.
        make: Gives the inputs by name from a generator: float64 ones, which get gradients, and others.
        compute: The formula; its result is one tensor. The reference is the same formula in float64 on the CPU.
        dtypes: Types to compute in; a check for each.
        factor: Multiplies the tolerance.
        products: Whether it multiplies matrices, which chips may do at reduced precision for fp32.
        backward: Whether to compare gradients.
        layouts: Whether to try inputs that are not contiguous as well.
        constants: Float inputs that get no gradient.
    """

    name: str
    title: str
    blocks: str
    make: Callable[[torch.Generator], Inputs]
    compute: Callable[[Inputs], Any]
    dtypes: tuple[Any, ...] = FLOATS
    factor: float = 1.0
    products: bool = False
    backward: bool = True
    layouts: bool = True
    constants: tuple[str, ...] = ()


def add_cases(group: str, cases: tuple[OperatorCase, ...]) -> None:
    """Add a check for each case and type."""
    for case in cases:
        for dtype in case.dtypes:
            short = SHORT_NAMES[dtype]
            add(
                Check(
                    id=f"{group}.{case.name}.{short}",
                    title=f"{case.title} in {short}",
                    blocks=case.blocks,
                    run=_runner(case, dtype),
                )
            )


def wide(tensor: Any) -> Any:
    """The tensor in fp32, as models compute norms and losses; float64 stays, for the reference."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def _runner(case: OperatorCase, dtype: Any) -> CheckFunction:
    def run(bench: Bench) -> str:
        # Rounded to the type first: the reference computes from the numbers that the device has.
        made = {name: _rounded(value, dtype) for name, value in case.make(bench.generator(7)).items()}
        reference = _Outcome.of(case, {name: _leaf(case, name, value) for name, value in made.items()})
        worst = 0.0
        for strided in (False, True) if case.layouts else (False,):
            inputs = {
                name: _leaf(case, name, _on_device(value, bench.device, dtype, strided)) for name, value in made.items()
            }
            worst = max(worst, _compare(case, dtype, _Outcome.of(case, inputs), reference, strided))
        if dtype is torch.float32 and worst > TOLERANCES[dtype] * case.factor:
            raise CheckWarned(
                f"fp32 products are off by {worst:.1g}: reduced precision, as TF32",
                "full fp32; turn reduced precision off to compare runs with other chips",
            )
        return f"largest error {worst:.1g}"

    return run


@dataclass
class _Outcome:
    """The result of a case and the gradients of its inputs."""

    result: Any
    gradients: dict[str, Any]

    @classmethod
    def of(cls, case: OperatorCase, inputs: Inputs) -> "_Outcome":
        result = case.compute(inputs)
        leaves = {name: value for name, value in inputs.items() if getattr(value, "requires_grad", False)}
        if not case.backward:
            return cls(result, {})
        # The incoming gradient is made on the CPU and rounded, so that both sides get the same.
        incoming = torch.randn(result.shape, generator=torch.Generator().manual_seed(11), dtype=torch.float64)
        narrow = torch.bfloat16 if result.dtype == torch.float64 else result.dtype
        incoming = incoming.to(torch.bfloat16).to(narrow).to(result.dtype).to(result.device)
        if not result.requires_grad:
            return cls(result, dict.fromkeys(leaves))
        found = torch.autograd.grad(result, list(leaves.values()), grad_outputs=incoming, allow_unused=True)
        return cls(result, dict(zip(leaves, found, strict=True)))


def _rounded(value: Any, dtype: Any) -> Any:
    return value.to(dtype).to(torch.float64) if _is_float(value) else value


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _leaf(case: OperatorCase, name: str, value: Any) -> Any:
    return (
        value.detach().requires_grad_() if case.backward and _is_float(value) and name not in case.constants else value
    )


def _on_device(value: Any, device: Any, dtype: Any, strided: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if _is_float(value):
        value = value.to(dtype)
    # Made on the device, so that the copy is a plain one.
    if strided and value.dim() >= 2:
        return value.transpose(-1, -2).contiguous().to(device).transpose(-1, -2)
    if strided and value.dim() == 1:
        return torch.stack([value, torch.zeros_like(value)], dim=1).to(device)[:, 0]
    return value.to(device)


def _compare(case: OperatorCase, dtype: Any, actual: _Outcome, reference: _Outcome, strided: bool) -> float:
    """Return the largest deviation; fails beyond the tolerance."""
    suffix = " (inputs not contiguous)" if strided else ""
    tolerance = TOLERANCES[dtype] * case.factor
    limit = max(tolerance, REDUCED_FP32) if case.products and dtype is torch.float32 else tolerance
    pairs = [("result", actual.result, reference.result)]
    for name, wanted in reference.gradients.items():
        got = actual.gradients[name]
        if got is None or (wanted.abs().max() > 0 and not got.any()):
            kind = "no gradient" if got is None else "a gradient of zeros"
            raise CheckFailed(f"{name} gets {kind}: the operator has no working backward{suffix}", "a gradient")
        pairs.append((f"gradient of {name}", got, wanted))
    largest = 0.0
    for what, got, wanted in pairs:
        found = deviation(got, wanted, what)
        if found.relative > limit:
            raise CheckFailed(found.text(what) + suffix, f"{found.expected:.6g} within {limit:.1g}")
        largest = max(largest, found.relative)
    return largest
