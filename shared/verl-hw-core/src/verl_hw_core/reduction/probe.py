# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a process group's backend really computes for SUM and AVG on its device."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from verl_hw_core import upstream
from verl_hw_core.errors import ReductionError

ROW = "reduce-avg"
"""Ledger row of the replacement."""

SIZES = (1, 3, 63, 64, 1024)
"""Elements a rank: a fault in the field concerned tensors below a size only (torch-xpu-ops #3020)."""

TOLERANCE = {"float32": 1e-6, "bfloat16": 1e-2}
"""Relative error allowed by dtype; every partial sum of the contributions is exact, whatever the order (see _mine)."""

_BF16_CONTRIBUTORS = 128  # integers up to 256 are exact in bfloat16
_ELSEWHERE = "another rank of the group saw a wrong answer"


def places(name: str) -> tuple[str, str]:
    """Return the two names under which torch has a function."""
    return f"torch.distributed:{name}", f"torch.distributed.distributed_c10d:{name}"


def original(name: str) -> Callable[..., Any]:
    """Return torch's own function ``name``, whether or not it is replaced at the moment."""
    own: Callable[..., Any] = upstream.original(ROW, dist, name)
    return own


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
    """Compare SUM and AVG of the backend that a process group has for a torch device with known answers.

    Every rank of the group must call this at the same time.

    Raises:
        ReductionError: SUM itself is wrong: no training result could be trusted.
    """
    fault = _first_fault(group, device, dist.ReduceOp.SUM)
    if _somebody(fault, group, device):
        raise ReductionError(
            f"The collective backend {group._get_backend(device).name()!r} for {device.type} in a group of "
            f"{group.size()} gives a wrong SUM: {fault or _ELSEWHERE}. Training on it would give wrong numbers; update "
            "the vendor's collective library, or see 'verl-hw check --only collectives'"
        )
    fault = _first_fault(group, device, dist.ReduceOp.AVG)
    if _somebody(fault, group, device):
        return ProbeResult(False, fault or _ELSEWHERE)
    return ProbeResult(True)


def _somebody(fault: str, group: Any, device: Any) -> bool:
    """Whether any rank has a fault: the ranks of a group must decide alike. MAX, since SUM itself may be at fault."""
    doubt = torch.full((1,), 1.0 if fault else 0.0, dtype=torch.float32, device=device)
    original("all_reduce")(doubt, op=dist.ReduceOp.MAX, group=group)
    return bool(doubt.item() > 0)


def _first_fault(group: Any, device: Any, op: Any) -> str:
    """Run every operation, whatever the earlier ones gave, so that all ranks issue the same; return the first fault."""
    name = "SUM" if op == dist.ReduceOp.SUM else "AVG"
    faults = []
    for dtype_name, tolerance in TOLERANCE.items():
        dtype, mine = getattr(torch, dtype_name), _mine(dtype_name, dist.get_rank(group))
        wanted = _expected(dtype_name, group.size(), op)
        for size in SIZES:
            for operation, run in _OPERATIONS.items():
                what = f"{operation} of {size} {dtype_name} elements"
                try:
                    got = run(group, device, op, dtype, size, mine).double().cpu()
                except Exception as error:  # noqa: BLE001 - a backend may refuse an operation with any exception
                    faults.append(f"{name} is refused: {error}".splitlines()[0])
                    continue
                if not torch.allclose(got, torch.full_like(got, wanted), rtol=tolerance, atol=0):
                    faults.append(f"{name} is wrong: {what}, expected {wanted:g}, got {got[0]:g}")
    return faults[0] if faults else ""


def _mine(dtype_name: str, rank: int) -> int:
    """What a rank contributes: in float32 a value of its own, in bfloat16 a one from the first ranks."""
    return rank + 1 if dtype_name == "float32" else int(rank < _BF16_CONTRIBUTORS)


def _expected(dtype_name: str, ranks: int, op: Any) -> float:
    total = float(sum(_mine(dtype_name, rank) for rank in range(ranks)))
    return total if op == dist.ReduceOp.SUM else total / ranks


def _all_reduce(group: Any, device: Any, op: Any, dtype: Any, size: int, mine: int) -> Any:
    tensor = torch.full((size,), mine, dtype=dtype, device=device)
    original("all_reduce")(tensor, op=op, group=group)
    return tensor


def _reduce_scatter(group: Any, device: Any, op: Any, dtype: Any, size: int, mine: int) -> Any:
    full = torch.full((size * dist.get_world_size(group),), mine, dtype=dtype, device=device)
    shard = torch.empty(size, dtype=dtype, device=device)
    original("reduce_scatter_tensor")(shard, full, op=op, group=group)
    return shard


_OPERATIONS: dict[str, Callable[..., Any]] = {"all_reduce": _all_reduce, "reduce_scatter": _reduce_scatter}
