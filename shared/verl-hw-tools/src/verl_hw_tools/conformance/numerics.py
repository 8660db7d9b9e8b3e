# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Compare a device's numbers with the same formula in float64 on the CPU."""

from dataclasses import dataclass
from typing import Any

import torch

from verl_hw_tools.conformance.verdicts import CheckFailed

# Error allowed, as a part of the value plus the typical value of its tensor. Some ten roundings of the type.
TOLERANCES: dict[Any, float] = {
    torch.float64: 1e-12,
    torch.float32: 2e-5,
    torch.bfloat16: 3e-2,
    torch.float16: 5e-3,
}
# What fp32 products of reduced precision (TF32 and the like) may be off by.
REDUCED_FP32 = 3e-3

SHORT_NAMES: dict[Any, str] = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.uint8: "uint8",
    torch.int8: "int8",
    torch.bool: "bool",
}


@dataclass(frozen=True)
class Deviation:
    """How far a tensor is from its reference.

    Attributes:
        relative: Largest error, as a part of the value plus the typical value (root mean square) of the reference.
        observed: The value there.
        expected: The reference's value there.
        where: Its index.
    """

    relative: float
    observed: float
    expected: float
    where: tuple[int, ...]

    def text(self, what: str) -> str:
        """Describe the deviation of ``what``."""
        return f"{what}{list(self.where)} = {self.observed:.6g} (off by {self.relative:.2g})"


def deviation(actual: Any, reference: Any, what: str = "result") -> Deviation:
    """Return the largest deviation of a tensor on any device from a float64 reference on the CPU.

    Raises:
        CheckFailed: The shapes differ.
    """
    found = actual.detach().to("cpu").to(torch.float64)
    wanted = reference.detach().to(torch.float64)
    if found.shape != wanted.shape:
        raise CheckFailed(f"{what} has shape {tuple(found.shape)}", f"shape {tuple(wanted.shape)}")
    if wanted.numel() == 0:
        return Deviation(0.0, 0.0, 0.0, ())
    error = (found - wanted).abs()
    error[found == wanted] = 0.0  # equal infinities
    finite = wanted[wanted.isfinite()]
    typical = finite.square().mean().sqrt().item() if finite.numel() else 1.0
    scaled = error / (wanted.abs() + typical + 1e-30)
    scaled = torch.where(scaled.isnan(), torch.full_like(scaled, float("inf")), scaled)
    worst = int(scaled.argmax())
    where = tuple(int(part) for part in torch.unravel_index(torch.tensor(worst), wanted.shape))
    flat = scaled.flatten()
    return Deviation(flat[worst].item(), found.flatten()[worst].item(), wanted.flatten()[worst].item(), where)


def require_close(actual: Any, reference: Any, dtype: Any, what: str = "result", factor: float = 1.0) -> Deviation:
    """Fail the running check unless ``actual`` is near ``reference``, by the tolerance of ``dtype``.

    Args:
        actual: Tensor on any device.
        reference: float64 tensor on the CPU, of the same shape.
        dtype: Type that the device computed in.
        what: Name for the message.
        factor: Multiplies the tolerance.

    Raises:
        CheckFailed: It is not.
    """
    found = deviation(actual, reference, what)
    tolerance = TOLERANCES[dtype] * factor
    if found.relative > tolerance:
        raise CheckFailed(found.text(what), f"{found.expected:.6g} within {tolerance:.1g} ({SHORT_NAMES[dtype]})")
    return found


def require_equal(actual: Any, expected: Any, what: str = "result") -> None:
    """Fail the running check unless two tensors are equal in shape, type and every value.

    Raises:
        CheckFailed: They are not.
    """
    found, wanted = actual.detach().to("cpu"), expected.detach().to("cpu")
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        raise CheckFailed(
            f"{what} is {found.dtype} of shape {tuple(found.shape)}", f"{wanted.dtype} of shape {tuple(wanted.shape)}"
        )
    if not torch.equal(found, wanted):
        differing = (found != wanted).flatten()
        first = int(differing.int().argmax())
        count = int(differing.sum())
        raise CheckFailed(
            f"{what}: {count} of {found.numel()} values differ; at flat index {first} it is "
            f"{found.flatten()[first].item()}",
            f"{wanted.flatten()[first].item()}",
        )
