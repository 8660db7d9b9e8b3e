# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a process group's backend really computes for SUM and AVG on its device."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from verl_hw_core.errors import ReductionError
from verl_hw_core.reduction.originals import original

SIZES = (1, 3, 63, 64, 1024)
"""Elements a rank: a fault in the field concerned tensors below a size only (torch-xpu-ops #3020)."""

TOLERANCE = {"float32": 1e-6, "bfloat16": 1e-2}
"""Relative error allowed by dtype. The known answers are exact in float32 up to 4096 ranks."""


@dataclass(frozen=True)
class ProbeResult:
    """What the probe saw.

    Attributes:
        avg_works: Whether AVG gave the known answer every time, on every rank of the group.
        why: What was wrong with AVG, empty when it works.
    """

    avg_works: bool
    why: str = ""


def probe(group: Any, device: Any) -> ProbeResult:
    """Compare SUM and AVG with known answers; every rank of ``group`` must call this at the same time.

    Args:
        group: The torch.distributed process group.
        device: The torch device whose backend in the group is asked.

    Raises:
        ReductionError: SUM itself is wrong: no training result could be trusted.
    """
    import torch.distributed as dist

    for what, difference in _wrong_answers(group, device, dist.ReduceOp.SUM):
        raise ReductionError(
            f"{_name(group, device)} gives a wrong SUM: {what}, {difference}. Training on it would give wrong numbers; "
            "update the vendor's collective library, or check the devices with 'verl-hw check --only collectives'"
        )
    why = _avg_fault(group, device)
    # One rank's doubt is everyone's: the ranks of a group must issue the same operations.
    doubts = torch_scalar(1.0 if why else 0.0, device)
    original("all_reduce")(doubts, group=group)
    if doubts.item() == 0:
        return ProbeResult(True)
    return ProbeResult(False, why or "another rank of the group saw a wrong answer")


def torch_scalar(value: float, device: Any) -> Any:
    """Return a one-element float32 tensor on ``device``."""
    import torch

    return torch.full((1,), value, dtype=torch.float32, device=device)


def _avg_fault(group: Any, device: Any) -> str:
    import torch.distributed as dist

    try:
        for what, difference in _wrong_answers(group, device, dist.ReduceOp.AVG):
            return f"AVG is wrong: {what}, {difference}"
    except Exception as error:  # noqa: BLE001 - a backend may refuse AVG with any exception
        return f"AVG is refused: {error}".splitlines()[0]
    return ""


def _wrong_answers(group: Any, device: Any, op: Any) -> Iterator[tuple[str, str]]:
    """Yield (operation, difference) for each answer that is off."""
    import torch
    import torch.distributed as dist

    ranks = dist.get_world_size(group)
    expected_factor = 1.0 if op == dist.ReduceOp.SUM else 1.0 / ranks
    for dtype_name, tolerance in TOLERANCE.items():
        dtype = getattr(torch, dtype_name)
        for size in SIZES:
            for name, run in _OPERATIONS.items():
                got = run(group, device, op, dtype, size).double().cpu()
                # Rank r contributes r + 1, so that a lost, doubled or swapped rank changes the answer.
                wanted = torch.full_like(got, ranks * (ranks + 1) / 2 * expected_factor)
                if not torch.allclose(got, wanted, rtol=tolerance, atol=0):
                    yield f"{name} of {size} {dtype_name} elements", f"expected {wanted[0]:g}, got {got[0]:g}"


def _all_reduce(group: Any, device: Any, op: Any, dtype: Any, size: int) -> Any:
    import torch
    import torch.distributed as dist

    tensor = torch.full((size,), dist.get_rank(group) + 1, dtype=dtype, device=device)
    original("all_reduce")(tensor, op=op, group=group)
    return tensor


def _reduce_scatter(group: Any, device: Any, op: Any, dtype: Any, size: int) -> Any:
    import torch
    import torch.distributed as dist

    full = torch.full((size * dist.get_world_size(group),), dist.get_rank(group) + 1, dtype=dtype, device=device)
    shard = torch.empty(size, dtype=dtype, device=device)
    original("reduce_scatter_tensor")(shard, full, op=op, group=group)
    return shard


_OPERATIONS: dict[str, Callable[..., Any]] = {"all_reduce": _all_reduce, "reduce_scatter": _reduce_scatter}


def _name(group: Any, device: Any) -> str:
    backend = group._get_backend(device).name()
    return f"The collective backend {backend!r} for {device.type} in a group of {group.size()}"
