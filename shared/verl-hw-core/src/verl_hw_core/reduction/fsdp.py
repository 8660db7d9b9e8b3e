# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Gradient averages of FSDP and FSDP2: refused where there would be none, as sum-then-divide where AVG is wrong."""

from typing import Any

from torch.distributed.fsdp import FSDPModule

from verl_hw_core.errors import UnsupportedModelSettingError
from verl_hw_core.reduction.decision import decide


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
