# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The tiny model under FSDP and FSDP2 as verl wraps models, on one or two mesh dimensions."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    fully_shard,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.checks._ranked import settle
from verl_hw_tools.conformance.checks._tiny_model import (
    CLIP,
    STEPS,
    Block,
    Training,
    batch,
    build,
    loss_of,
    optimizer_of,
)
from verl_hw_tools.conformance.verdicts import CheckSkipped

Wrap = Callable[[Bench], Any]


def mesh_of(bench: Bench, hybrid: bool) -> Any:
    """Return a mesh to shard over; a hybrid one has two replicas."""
    if hybrid:
        shape = (2, bench.world_size // 2)
        return init_device_mesh(bench.type, shape, mesh_dim_names=("ddp", "fsdp"))
    return init_device_mesh(bench.type, (bench.world_size,), mesh_dim_names=("fsdp",))


def fsdp1(bench: Bench, *, hybrid: bool = False, low: Any = None) -> Any:
    """Return the model under FSDP1."""
    precision = MixedPrecision(param_dtype=low, reduce_dtype=torch.float32, buffer_dtype=torch.float32)
    return FullyShardedDataParallel(
        build(),
        device_id=bench.device.index,
        device_mesh=mesh_of(bench, hybrid),
        sharding_strategy=ShardingStrategy.HYBRID_SHARD if hybrid else ShardingStrategy.FULL_SHARD,
        auto_wrap_policy=ModuleWrapPolicy({Block}),
        mixed_precision=precision if low is not None else None,
        sync_module_states=True,
        use_orig_params=False,
    )


def fsdp2(
    bench: Bench, *, hybrid: bool = False, low: Any = None, offload: bool = False, native: bool = False
) -> FSDPModule:
    """Return the model under FSDP2; unless ``native``, gradients are summed and divided, as verl-hw can do anywhere."""
    model = build() if offload else build().to(bench.device)
    options: dict[str, Any] = {"mesh": mesh_of(bench, hybrid)}
    if low is not None:
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=low, reduce_dtype=torch.float32)
    if offload:
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
    if not native:
        _sum_then_divide(model)
    return model


def _sum_then_divide(model: Any) -> None:
    if not hasattr(FSDPModule, "set_force_sum_reduction_for_comms"):
        raise CheckSkipped(
            f"FSDP2 of torch {torch.__version__} always averages; see the check with _native in its name"
        )
    for module in model.modules():
        # The setter does not reach nested modules.
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(True)


def step_of(model: Any, optimizer: Any, ids: Any) -> tuple[Any, Any]:
    """Do one training step; returns the local loss and the norm of all gradients."""
    loss = loss_of(model, ids)
    loss.backward()
    if isinstance(model, FullyShardedDataParallel):
        norm = model.clip_grad_norm_(CLIP)
    else:
        norm = nn.utils.clip_grad_norm_(model.parameters(), CLIP).full_tensor()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach(), norm


def train(bench: Bench, wrap: Wrap) -> Training:
    """Train the wrapped model on this rank's part of the data."""
    model = wrap(bench)
    optimizer = optimizer_of(model)
    losses, norms = [], []
    for step in range(STEPS):
        loss, norm = step_of(model, optimizer, batch(step, bench.rank).to(bench.device))
        # Over gloo: what is in question here is the training, not this sum.
        mean = loss.cpu()
        dist.all_reduce(mean)
        losses.append(mean.item() / bench.world_size)
        norms.append(float(norm))
    settle(bench)
    return Training(losses, norms, whole_parameters(model))


def whole_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters whole, on the CPU; on every rank."""
    found = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=False))
    return {name: value.detach().cpu() for name, value in found.items()}
