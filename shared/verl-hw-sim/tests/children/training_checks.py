# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Training with FSDP on two ranks: the device and its collective library against the CPU and gloo, bit for bit."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    fully_shard,
)
from torch.nn.parallel import DistributedDataParallel

from verl_hw_sim import limits
from verl_hw_sim.simulation import active_simulation

PROFILE = active_simulation().profile
D, CCL = PROFILE.device_name, PROFILE.ccl_backend
RANK = int(os.environ["RANK"])
STEPS = 3

getattr(torch, D).set_device(RANK)
dist.init_process_group(f"cpu:gloo,{D}:{CCL}")
GLOO = dist.new_group([0, 1], backend="gloo")
DEVICE_GROUP = dist.new_group([0, 1], backend=CCL)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        q = self.norm(x).view(2, -1, 2, 8).transpose(1, 2)
        x = x + nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2).reshape(x.shape)
        return x + self.down(nn.functional.gelu(self.up(x)))


def _model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(32, 16), Block(), Block(), nn.Linear(16, 32))


def _steps(model, device, norm):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    history = []
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(10 * step + RANK)
        ids = torch.randint(0, 32, (2, 7), generator=generator).to(device)
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1).float(), ids.flatten())
        loss.backward()
        history.append((loss.item(), float(norm(model))))
        optimizer.step()
        optimizer.zero_grad()
    return history


def _norm(model):
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm


def _fsdp2(device, **options):
    mesh = init_device_mesh(device, (2,))
    model = _model().to(device)
    for layer in model[1:3]:
        fully_shard(layer, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    assert isinstance(model, FSDPModule)
    for module in model.modules():
        if isinstance(module, FSDPModule) and hasattr(module, "set_force_sum_reduction_for_comms"):
            module.set_force_sum_reduction_for_comms(True)  # gloo has no AVG
    history = _steps(model, device, _norm)
    return history, [parameter.full_tensor().detach().cpu() for parameter in model.parameters()]


def _equal(ours, theirs):
    assert ours[0] == theirs[0], (ours[0], theirs[0])
    assert len(ours[1]) == len(theirs[1])
    for here, there in zip(ours[1], theirs[1], strict=True):
        assert torch.equal(here, there)


def check_fsdp2():
    _equal(_fsdp2(D), _fsdp2("cpu"))


def check_fsdp2_mixed_precision():
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    _equal(_fsdp2(D, mp_policy=policy), _fsdp2("cpu", mp_policy=policy))


def check_fsdp2_with_native_avg_equals_sum():
    def average(device):
        model = _model().to(device)
        fully_shard(model, mesh=init_device_mesh(device, (2,)))
        return _steps(model, device, _norm)

    plain = average(D)
    assert [loss for loss, _ in plain] == [loss for loss, _ in _fsdp2(D)[0]]
    with limits.override(avg_rejected=True):
        try:
            average(D)
        except RuntimeError as error:
            assert "avg_rejected" in str(error)
        else:
            raise AssertionError("AVG did not raise")


def check_fsdp2_offload():
    history, _ = _fsdp2(D)
    model = _model()
    policy = CPUOffloadPolicy(pin_memory=True)
    mesh = init_device_mesh(D, (2,))
    for layer in model[1:3]:
        fully_shard(layer, mesh=mesh, offload_policy=policy)
    fully_shard(model, mesh=mesh, offload_policy=policy)
    losses = [loss for loss, _ in _steps(model, D, lambda _: 0.0)]
    assert losses[0] == history[0][0]
    assert next(model.parameters()).device.type == "cpu"


def _fsdp1(device, group):
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    model = FullyShardedDataParallel(
        _model().to(device),
        process_group=group,
        auto_wrap_policy=ModuleWrapPolicy({Block}),
        device_id=torch.device(device, RANK) if device != "cpu" else torch.device("cpu"),
        use_orig_params=False,
    )
    history = _steps(model, device, lambda wrapped: wrapped.clip_grad_norm_(1.0))
    with FullyShardedDataParallel.summon_full_params(model):
        return history, [parameter.detach().cpu().clone() for parameter in model.parameters()]


def check_fsdp1():
    _equal(_fsdp1(D, DEVICE_GROUP), _fsdp1("cpu", GLOO))


def check_ddp():
    if D == "cuda":
        return  # DDP times CUDA devices with a class that only a CUDA build has

    def train(device, group):
        model = DistributedDataParallel(_model().to(device), process_group=group)
        history = _steps(model, device, _norm)
        return history, [parameter.detach().cpu() for parameter in model.parameters()]

    _equal(train(D, DEVICE_GROUP), train("cpu", GLOO))


def check_the_end():
    dist.destroy_process_group()
