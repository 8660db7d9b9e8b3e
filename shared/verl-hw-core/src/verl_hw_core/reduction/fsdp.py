# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""FSDP2 gradient averaging as sum-then-divide."""

from typing import Any

from verl_hw_core.reduction.decision import decide


def force_sum(module: Any) -> int:
    """Make every FSDP2 module in ``module`` sum and divide itself; return how many there are.

    torch's setter is not recursive, and a module that was wrapped later (LoRA, a value head) has a switch of its own.
    It covers both legs of HSDP. FSDP1 always sums and divides, has no switch and needs none.
    """
    from torch.distributed.fsdp import FSDPModule

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
