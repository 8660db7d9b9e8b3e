# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Is a fused kernel right on this device, forward and backward? Asked once a process, before it is used.

A kernel without autograd trains with zero gradients and no error, as happened in the field.
"""

import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

from verl_hw_core.model_patches.declarations import FusedOp
from verl_hw_core.model_patches.operations import PORTABLE, Form

TOLERANCE = {"float32": 1e-4, "bfloat16": 3e-2, "float16": 5e-3}
"""Largest error by dtype, relative to the largest exact value; the exact value is the portable form's in float32."""

_SHAPES = ((1, 7, 2, 8), (2, 16, 4, 64), (1, 33, 1, 128))
"""(batch, tokens, heads, head size)."""


@cache
def usable_form(fused: FusedOp, device: str) -> tuple[Form | None, str]:
    """Return the declared kernel as a form of its operation, or None, and why; for a torch device type."""
    try:
        kernel: Any = importlib.import_module(fused.module)
        for name in fused.attribute.split("."):
            kernel = getattr(kernel, name)
    except (ImportError, AttributeError, OSError) as error:
        return None, f"{fused.kernel} cannot be imported: {error}"

    def form(*args: Any, **kwargs: Any) -> Any:
        return fused.adapter(kernel, *args, **kwargs)

    try:
        problem = _problem(form, fused, device)
    except Exception as error:  # noqa: BLE001 - a vendor's kernel may fail with any exception
        problem = f"raises {type(error).__name__}: {error}"
    if problem:
        return None, f"{fused.kernel} {problem}"
    return _by_dtype(form, fused), f"{fused.kernel} agrees with torch forward and backward on {device}"


def _by_dtype(form: Form, fused: FusedOp) -> Form:
    portable = PORTABLE[fused.operation]
    dtypes = frozenset(getattr(torch, name) for name in fused.dtypes)

    def dispatch(first: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return (form if first.dtype in dtypes else portable)(first, *args, **kwargs)

    return dispatch


def _problem(form: Form, fused: FusedOp, device: str) -> str:
    portable = PORTABLE[fused.operation]
    for dtype in fused.dtypes:
        for shape in _SHAPES:
            for inputs, others in _cases(fused.operation, shape, device):
                problem = _compare(form, portable, [one.to(getattr(torch, dtype)) for one in inputs], others)
                if problem:
                    return f"{problem} ({dtype}, batch, tokens, heads and head size {shape})"
    return ""


def _compare(form: Form, portable: Form, inputs: list[torch.Tensor], others: tuple[Any, ...]) -> str:
    """First difference between a form and the portable one in float32, or an empty string."""
    tolerance = TOLERANCE[str(inputs[0].dtype).removeprefix("torch.")]
    given = [one.detach().clone(memory_format=torch.preserve_format).requires_grad_() for one in inputs]
    exact = [one.detach().float().requires_grad_() for one in inputs]
    expected = _flat(portable(*exact, *others))
    found = _flat(form(*given, *others))
    if any(not torch.equal(one, own) for one, own in zip(given, inputs, strict=True)):
        return "writes into its inputs"
    for one, other in zip(found, expected, strict=True):
        if _off(one, other) > tolerance:
            return f"computes something else: off by {_off(one, other):.2g} of the largest value"
    if not all(one.requires_grad for one in found):
        return "has no gradient"
    weights = [torch.linspace(-1, 1, one.numel(), device=one.device).reshape(one.shape) for one in expected]
    own = torch.autograd.grad(found, given, [w.to(one.dtype) for w, one in zip(weights, found, strict=True)])
    right = torch.autograd.grad(expected, exact, weights)
    for number, (one, other) in enumerate(zip(own, right, strict=True)):
        if _off(one, other) > tolerance:
            return f"has a wrong gradient for input {number}: off by {_off(one, other):.2g} of the largest value"
    return ""


def _flat(value: Any) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple) else [value]


def _off(found: torch.Tensor, expected: torch.Tensor) -> float:
    if found.shape != expected.shape:
        return float("inf")
    off = float((found.detach().float() - expected.detach()).abs().max() / expected.detach().abs().max())
    return float("inf") if off != off else off


def _cases(
    operation: str, shape: tuple[int, int, int, int], device: str
) -> Iterator[tuple[list[torch.Tensor], tuple[Any, ...]]]:
    """Yield inputs that need gradients, then the other arguments."""
    batch, tokens, heads, size = shape
    generator = torch.Generator().manual_seed(0)

    def random(*sizes: int) -> torch.Tensor:
        return torch.randn(*sizes, generator=generator).to(device)

    if operation == "rms_norm":
        yield [random(batch, tokens, size), random(size)], (1e-6,)
        yield [random(batch, tokens, heads, size), random(size)], (1e-5,)
    elif operation == "swiglu":
        yield [random(batch, tokens, heads * size), random(batch, tokens, heads * size)], ()
    else:
        angles = torch.rand(3, batch, tokens, size // 2, generator=generator).to(device) * 6
        cos, sin = (torch.cat((part, part), dim=-1) for part in (angles.cos(), angles.sin()))
        # As in attention layers: heads before tokens by a transposition, so not contiguous; fewer heads in the key.
        query, key = (random(batch, tokens, count, size).transpose(1, 2) for count in (heads, max(1, heads // 2)))
        if operation == "rotary":
            yield [query, key, cos[0], sin[0]], ()
        else:
            yield [query, key, cos, sin], ([size // 8, size // 8, size // 2 - 2 * (size // 8)],)
