# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What averages over ranks come to on simulated devices whose collective library has the faults of the field.

Usage: ``python reduction_program.py OUT_FOLDER WORLD_SIZE``. Every rank runs every scenario and writes its results.
"""

import logging
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from rank_start import run_ranks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from verl_hw_core import reduction
from verl_hw_core.reduction import decision
from verl_hw_sim import limits

DEVICE, CCL = "mlu", "cncl"
AVG, SUM = dist.ReduceOp.AVG, dist.ReduceOp.SUM


def mine(*shape: int, dtype=torch.float32) -> torch.Tensor:
    """A tensor of rank + 1 on the device."""
    return torch.full(shape, dist.get_rank() + 1, dtype=dtype, device=DEVICE)


def refused(call, *args, **kwargs) -> str:
    """Type and text of the exception of a call, empty if there was none."""
    try:
        call(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - which one it is, is the question
        return f"{type(error).__name__}: {error}"
    return ""


def fresh_decisions() -> None:
    decision._decisions.clear()


def averages() -> dict:
    """Every reduction that takes an operation, over the default group, all answering the average of rank + 1."""
    ranks = dist.get_world_size()
    results = {}
    tensor = mine(3)
    dist.all_reduce(tensor, op=AVG)
    results["all_reduce"] = tensor.tolist()
    tensor = mine(3)
    work = dist.all_reduce(tensor=tensor, op=AVG, async_op=True)
    work.wait()
    work.wait()
    results["async all_reduce, waited for twice"] = tensor.tolist()
    tensor = mine(3)
    dist.all_reduce(tensor, op=AVG, async_op=True).get_future().wait()
    results["async all_reduce, by its future"] = tensor.tolist()
    tensor = mine(3)
    work = dist.all_reduce(tensor, op=AVG, async_op=True)
    while not work.is_completed():
        time.sleep(0.001)
    results["async all_reduce, polled"] = tensor.tolist()
    for name, reduce_to in (("all_reduce", {}), ("reduce", {"dst": 0})):
        tensor = mine(3)
        getattr(dist, name)(tensor, op=AVG, async_op=True, **reduce_to)
        torch.mlu.synchronize()
        results[f"async {name}"] = tensor.tolist()
    contribution, shard = mine(2 * ranks), torch.empty(2, device=DEVICE)
    dist.reduce_scatter_tensor(shard, contribution, op=AVG, async_op=True)
    torch.mlu.synchronize()
    results["async reduce_scatter_tensor"] = shard.tolist()
    shard = torch.empty(2, device=DEVICE)
    dist.reduce_scatter(shard, [mine(2) for _ in range(ranks)], op=AVG, async_op=True)
    torch.mlu.synchronize()
    results["async reduce_scatter"] = shard.tolist()
    tensor = mine(3)
    dist.reduce(tensor, dst=0, op=AVG)
    results["reduce"] = tensor.tolist() if dist.get_rank() == 0 else None
    shard = torch.empty(2, device=DEVICE)
    dist.reduce_scatter_tensor(shard, mine(2 * ranks), op=AVG)
    results["reduce_scatter_tensor"] = shard.tolist()
    shard = torch.empty(2, device=DEVICE)
    dist.reduce_scatter(shard, [mine(2) for _ in range(ranks)], op=AVG)
    results["reduce_scatter"] = shard.tolist()
    tensor = mine(3, dtype=torch.bfloat16)
    dist.all_reduce(tensor, AVG)
    results["bfloat16"] = tensor.float().tolist()
    return results


def not_touched() -> dict:
    """What must go to torch as it is."""
    host, device = torch.full((2,), dist.get_rank() + 1.0), mine(2)
    dist.all_reduce(host, op=AVG)
    dist.all_reduce(device, op=SUM)
    largest = mine(1, dtype=torch.int64)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    source = torch.ones(2, device=DEVICE, requires_grad=True)
    scaled = source * 3
    dist.all_reduce(scaled, op=AVG)
    scaled.sum().backward()
    seen = {"host avg": host, "device sum": device, "device max": largest, "gradient": source.grad}
    return {name: tensor.tolist() for name, tensor in seen.items()}


def sub_groups() -> dict:
    """A group without this rank, and one of a single rank."""
    first = dist.new_group([0])
    tensor = mine(2)
    dist.all_reduce(tensor, op=AVG, group=first)
    return {"own value": tensor.tolist(), "rank": dist.get_rank()}


def large_halves() -> list[float]:
    """The average of four values in float16 whose sum is beyond its largest one."""
    tensor = torch.full((2,), 40000.0, dtype=torch.float16, device=DEVICE)
    dist.all_reduce(tensor, op=AVG)
    return tensor.tolist()


def integers() -> dict:
    return {"error": refused(dist.all_reduce, mine(2, dtype=torch.int64), op=AVG)}


def fsdp2_gradients(mesh) -> dict:
    """Gradient of a model with nested FSDP2 modules, and the operations that its backward pass asked for."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))
    model = model.to(DEVICE)
    fully_shard(model[1], mesh=mesh)
    fully_shard(model, mesh=mesh)
    device = torch.device(DEVICE, torch.get_device_module(DEVICE).current_device())
    switched = reduction.force_sum_where_needed(model, mesh, device)
    inputs = torch.full((2, 4), dist.get_rank() + 1.0, device=DEVICE)
    error = refused(lambda: model(inputs).sum().backward())
    if error:
        return {"error": error, "switched": switched}
    gradients = [parameter.grad.full_tensor().flatten().tolist() for parameter in model.parameters()]
    nested = sum(isinstance(module, FSDPModule) for module in model.modules())
    return {"error": "", "switched": switched, "nested": nested, "gradients": gradients}


def scenarios() -> dict:
    ranks = dist.get_world_size()
    flat = init_device_mesh(DEVICE, (ranks,))
    hybrid = init_device_mesh(DEVICE, (2, ranks // 2), mesh_dim_names=("ddp", "fsdp"))
    results = {"plain": {"averages": averages(), "fsdp2": fsdp2_gradients(flat), "hsdp": fsdp2_gradients(hybrid)}}
    with limits.override(avg_rejected=True):
        results["rejected, not installed"] = {"error": refused(averages)}
        fresh_decisions()
        reduction.install(DEVICE)
        reduction.install(DEVICE)
        results["rejected"] = {
            "averages": averages(),
            "not touched": not_touched(),
            "sub-groups": sub_groups(),
            "integers": integers(),
            "large halves": large_halves(),
            "fsdp2": fsdp2_gradients(flat),
            "hsdp": fsdp2_gradients(hybrid),
        }
        os.environ["VERL_HW_REDUCTION"] = "native"
        fresh_decisions()
        results["rejected, native asked for"] = {"error": refused(averages)}
        os.environ["VERL_HW_REDUCTION"] = "perhaps"
        fresh_decisions()
        results["odd mode"] = {"error": refused(averages)}
        del os.environ["VERL_HW_REDUCTION"]
    for fault in ("avg_wrong", "sum_wrong"):
        fresh_decisions()
        with limits.override(**{fault: True}):
            error = refused(averages)
            results[fault] = {"error": error} if error else {"averages": averages(), "fsdp2": fsdp2_gradients(flat)}
    fresh_decisions()
    results["sound"] = {"averages": averages(), "decision": vars(reduction.decide(None, torch.device(DEVICE)))}
    reduction.uninstall()
    results["uninstalled"] = {"own": dist.all_reduce.__code__.co_filename.endswith("c10d_logger.py")}
    return results


def run_rank(rank: int, out: Path) -> dict:
    logging.basicConfig(filename=out / f"log-{rank}.txt", level=logging.INFO)
    return scenarios()


def main() -> None:
    out, world_size = Path(sys.argv[1]), int(sys.argv[2])
    run_ranks(lambda rank: run_rank(rank, out), world_size, out, DEVICE, CCL)


if __name__ == "__main__":
    main()
