# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Process groups: the composite default group, sub-groups, meshes, barriers."""

import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.checks._ranked import require_same, settle, total, values
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import require


@check("collectives.group.backend", blocks="everything: another library would carry the collectives", processes=2)
def backend(bench: Bench) -> None:
    """The device's collectives go through the vendor's library, the CPU's through gloo."""
    configured = str(dist.get_backend_config())
    for part in ("cpu:gloo", f"{bench.type}:{bench.spec.ccl_backend}"):
        require(part in configured, configured, part)


@check("collectives.group.cpu", blocks="collectives of CPU tensors beside those of the device", processes=2)
def cpu_tensors(bench: Bench) -> None:
    """The composite group reduces CPU tensors too."""
    tensor = values(63, bench.rank, torch.float32, "cpu")
    dist.all_reduce(tensor)
    require_same(tensor, total(63, range(bench.world_size)), "SUM on the CPU")


@check("collectives.group.subgroup", blocks="tensor, sequence and data parallel groups", processes=2)
def subgroups(bench: Bench) -> None:
    """A sub-group reduces over its members only, whoever is first in it."""
    world = list(range(bench.world_size))
    for members in (world[:1], world[-1:], world[::2], world[::-1]):
        group = dist.new_group(members)
        if bench.rank in members:
            tensor = values(64, bench.rank, torch.float32, bench.device)
            dist.all_reduce(tensor, group=group)
            settle(bench)
            require_same(tensor, total(64, members), f"SUM over ranks {members}")
            tensor = values(64, bench.rank, torch.float32, bench.device)
            dist.broadcast(tensor, src=members[-1], group=group)
            settle(bench)
            require_same(tensor, values(64, members[-1], torch.float64, "cpu"), f"broadcast in ranks {members}")
            dist.destroy_process_group(group)


@check("collectives.group.mesh", blocks="FSDP, HSDP and sequence parallel meshes", processes=2)
def mesh(bench: Bench) -> None:
    """A device mesh has working groups along each dimension."""
    rows = 2 if bench.world_size % 2 == 0 else 1
    columns = bench.world_size // rows
    found = init_device_mesh(bench.type, (rows, columns), mesh_dim_names=("replicate", "shard"))
    row, column = divmod(bench.rank, columns)
    members = {
        "replicate": [other * columns + column for other in range(rows)],
        "shard": [row * columns + other for other in range(columns)],
    }
    for name, ranks in members.items():
        tensor = values(63, bench.rank, torch.float32, bench.device)
        dist.all_reduce(tensor, group=found.get_group(name))
        settle(bench)
        require_same(tensor, total(63, ranks), f"SUM along {name}, ranks {ranks}")


@check("collectives.barrier", blocks="checkpoints: a rank reads what another has not written", processes=2)
def barrier(bench: Bench) -> None:
    """No rank leaves a barrier before the last one has come."""
    dist.barrier()
    late = 0.3
    if bench.rank == bench.world_size - 1:
        time.sleep(late)
        (bench.folder / "came-late").touch()
    dist.barrier()
    settle(bench)
    require((bench.folder / "came-late").exists(), "a rank left before the last one came", "all wait")


@check("collectives.functional", blocks="FSDP2 and tensor parallel models with DTensor", processes=2)
def functional(bench: Bench) -> None:
    """DTensor redistributes: sharded to whole and partial sums to whole."""
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

    found = init_device_mesh(bench.type, (bench.world_size,))
    whole = DTensor.from_local(values(4, bench.rank, torch.float32, bench.device), found, [Shard(0)]).full_tensor()
    settle(bench)
    wanted = torch.cat([values(4, rank, torch.float64, "cpu") for rank in range(bench.world_size)])
    require_same(whole, wanted, "a sharded DTensor made whole")
    partial = DTensor.from_local(values(4, bench.rank, torch.float32, bench.device), found, [Partial()])
    summed = partial.redistribute(placements=[Replicate()]).to_local()
    settle(bench)
    require_same(summed, total(4, range(bench.world_size)), "partial sums of a DTensor")
