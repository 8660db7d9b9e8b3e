# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a process group averages natively or by sum-then-divide; decided once a group and said in one line.

FSDP2's gradients follow the decision; FSDP1 is refused where it would not average at all.
"""

import logging
import os
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule

from verl_hw_core.errors import ReductionError, UnsupportedModelSettingError
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


def require_averaging(mesh: Any, engine_config: Any) -> None:
    """Refuse a device mesh over which FSDP1 would never average gradients.

    FSDP1 turns off sharding in groups of one rank and with it the reduction over the replicas, so that each rank trains
    a model of its own (https://github.com/pytorch/pytorch/issues/154888; FSDP2 averages there too).

    Args:
        mesh: The engine's device mesh; its last dimension is the one over which parameters are sharded.
        engine_config: verl's ``FSDPEngineConfig``.

    Raises:
        UnsupportedModelSettingError: The engine would train on several ranks without averaging.
    """
    ranks = mesh.size()
    if engine_config.strategy != "fsdp" or engine_config.forward_only or ranks == 1 or mesh.size(mesh.ndim - 1) > 1:
        return
    raise UnsupportedModelSettingError(
        f"strategy=fsdp on {ranks} ranks with fsdp_size={engine_config.fsdp_size}, which shards over one rank: torch's "
        "FSDP1 then never averages gradients, and each rank trains a model of its own. Set strategy=fsdp2, where this "
        f"is right, or fsdp_size=-1 (or a number above 1 that divides {ranks})."
    )


def force_sum(module: Any) -> int:
    """Make every FSDP2 module in ``module`` sum and divide itself; return how many there are.

    torch's setter is not recursive, and a module that was wrapped later (LoRA, a value head) has a switch of its own.
    It covers both legs of HSDP. FSDP1 always sums and divides, has no switch and needs none.
    """
    wrapped = [part for part in module.modules() if isinstance(part, FSDPModule)]
    for part in wrapped:
        part.set_force_sum_reduction_for_comms(True)
    return len(wrapped)


def force_sum_where_needed(module: Any, mesh: Any, device: Any) -> int:
    """Call :func:`force_sum` if any group of the device mesh averages by sum-then-divide. Collective over the mesh.

    Args:
        module: The model after ``fully_shard``.
        mesh: Its device mesh, 1-D, or 2-D for HSDP.
        device: The torch device of its parameters.

    Returns:
        The number of FSDP2 modules that were switched.
    """
    groups = [mesh.get_group(dimension) for dimension in range(mesh.ndim) if mesh.size(dimension) > 1]
    methods = [decide(group, device).method for group in groups]
    return force_sum(module) if "sum" in methods else 0
