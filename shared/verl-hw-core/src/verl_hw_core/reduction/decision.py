# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a process group averages natively or by sum-then-divide; decided once a group and said in one line."""

import logging
import os
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch.distributed as dist

from verl_hw_core.errors import ReductionError
from verl_hw_core.reduction.probe import probe

logger = logging.getLogger("verl_hw_core")

MODE_ENVVAR = "VERL_HW_REDUCTION"
MODES = ("auto", "sum", "native")

Method = Literal["sum", "native"]


@dataclass(frozen=True)
class Decision:
    """How a group averages on one device type, and why."""

    method: Method
    why: str


_decisions: WeakKeyDictionary[Any, dict[str, Decision]] = WeakKeyDictionary()


def decide(group: Any, device: Any) -> Decision:
    """Return how ``group`` averages on ``device``.

    The first call for a group is collective: all its ranks must make it, as they do when they all issue an AVG. The
    backend is asked, not its name: verl opens composite groups (``cpu:gloo,xpu:xccl``), named after no library.

    Args:
        group: The torch.distributed process group, None for the default group.
        device: The torch device of the tensors.

    Raises:
        ReductionError: ``VERL_HW_REDUCTION`` is not one of its three values, or the backend's SUM is wrong.
    """
    group = group if group is not None else dist.group.WORLD
    known = _decisions.setdefault(group, {})
    if device.type not in known:
        # torch's reductions call each other by name: what the probe asks for must reach the backend as it is.
        known[device.type] = Decision("native", "being probed")
        try:
            known[device.type] = _new_decision(group, device)
        except BaseException:
            del known[device.type]
            raise
    return known[device.type]


def is_known_to_need_sum(group: Any, device: Any) -> bool:
    """Whether it was decided already that ``group`` sums and divides on ``device``; not collective."""
    known = _decisions.get(group, {}).get(device.type)
    return known is not None and known.method == "sum"


def mode() -> str:
    """Return the value of ``VERL_HW_REDUCTION``: ``auto`` (try it out), ``sum`` or ``native``.

    Raises:
        ReductionError: It is something else.
    """
    value = os.environ.get(MODE_ENVVAR, "").strip().lower() or MODES[0]
    if value not in MODES:
        raise ReductionError(f"{MODE_ENVVAR}={os.environ[MODE_ENVVAR]!r} must be one of {', '.join(MODES)}")
    return value


def _new_decision(group: Any, device: Any) -> Decision:
    chosen = mode()
    if chosen == "sum":
        return Decision("sum", f"{MODE_ENVVAR}=sum")
    if chosen == "native":
        return Decision("native", f"{MODE_ENVVAR}=native")
    if group.size() == 1:
        return Decision("sum", "the sum over one rank is its average")
    result = probe(group, device)
    if result.avg_works:
        return Decision("native", "AVG gave the known answers")
    if group.rank() == 0:
        logger.warning(
            "Averages over %d ranks on %s are computed as sum-then-divide: %s (%s to override)",
            *(group.size(), device.type, result.why, MODE_ENVVAR),
        )
    return Decision("sum", result.why)
