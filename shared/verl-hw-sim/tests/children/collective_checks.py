# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The vendor's collective library between two ranks."""

import datetime
import os
import time

import torch
import torch.distributed as dist
from checks import raises
from torch.distributed import ReduceOp

from verl_hw_sim import limits
from verl_hw_sim.simulation import active_simulation

PROFILE = active_simulation().profile
D, CCL = PROFILE.device_name, PROFILE.ccl_backend
MODULE = getattr(torch, D)
RANK = int(os.environ["RANK"])
PEER = 1 - RANK
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])

MODULE.set_device(RANK)
dist.init_process_group(f"cpu:gloo,{D}:{CCL}")


def _mine(*values, dtype=torch.float32):
    """A tensor that differs by rank: 1 + rank in every place, or the values given."""
    return torch.tensor(values or (1.0 + RANK, 1.0 + RANK), dtype=dtype, device=D)


def _same(tensor, values):
    assert tensor.device == torch.device(D, RANK)
    assert tensor.tolist() == values, tensor


def _both(collective):
    """Run a collective synchronously and asynchronously; it returns a Work or None, and then checks its result."""
    for asynchronous in (False, True):
        work, check = collective(asynchronous)
        assert (work is not None) == asynchronous
        if work is not None:
            work.wait()
            assert work.is_completed()
        check()


def check_groups():
    assert dist.get_backend() == (CCL if D != "cuda" else "nccl") or CCL in dist.get_backend_config()
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device(D))
    assert backend.name() == CCL
    assert (backend.rank(), backend.size()) == (RANK, 2)


def check_all_reduce():
    for op, values in (
        (ReduceOp.SUM, [3, 3]),
        (ReduceOp.AVG, [1.5, 1.5]),
        (ReduceOp.MAX, [2, 2]),
        (ReduceOp.MIN, [1, 1]),
        (ReduceOp.PRODUCT, [2, 2]),
    ):

        def collective(asynchronous, op=op, values=values):
            tensor = _mine()
            return dist.all_reduce(tensor, op, async_op=asynchronous), lambda: _same(tensor, values)

        _both(collective)
    for dtype in (torch.bfloat16, torch.float16, torch.int64, torch.float64):
        tensor = torch.full((3,), 1 + RANK, dtype=dtype, device=D)
        dist.all_reduce(tensor)
        _same(tensor, [3] * 3)


def check_broadcast_and_reduce():
    def broadcast(asynchronous):
        tensor = _mine()
        return dist.broadcast(tensor, 1, async_op=asynchronous), lambda: _same(tensor, [2, 2])

    def reduce(asynchronous):
        tensor = _mine()
        # A rank that is not the root keeps its input.
        return dist.reduce(tensor, 0, async_op=asynchronous), lambda: _same(tensor, [3, 3] if RANK == 0 else [2, 2])

    _both(broadcast)
    _both(reduce)


def check_gathering():
    def all_gather(asynchronous):
        outputs = [torch.zeros(2, device=D) for _ in range(2)]
        work = dist.all_gather(outputs, _mine(), async_op=asynchronous)
        return work, lambda: (_same(outputs[0], [1, 1]), _same(outputs[1], [2, 2]))

    def into_tensor(asynchronous):
        output = torch.zeros(4, device=D)
        work = dist.all_gather_into_tensor(output, _mine(), async_op=asynchronous)
        return work, lambda: _same(output, [1, 1, 2, 2])

    def gather(asynchronous):
        outputs = [torch.zeros(2, device=D) for _ in range(2)] if RANK == 0 else None
        work = dist.gather(_mine(), outputs, 0, async_op=asynchronous)
        return work, lambda: RANK == 0 and _same(outputs[1], [2, 2])

    _both(all_gather)
    _both(into_tensor)
    _both(gather)


def check_scattering():
    def reduce_scatter(asynchronous):
        output = torch.zeros(2, device=D)
        work = dist.reduce_scatter(output, [_mine(), _mine() * 10], async_op=asynchronous)
        return work, lambda: _same(output, [3, 3] if RANK == 0 else [30, 30])

    def tensor(asynchronous):
        output = torch.zeros(1, device=D)
        work = dist.reduce_scatter_tensor(output, _mine(1.0, 2.0), ReduceOp.AVG, async_op=asynchronous)
        return work, lambda: _same(output, [1.0 + RANK])

    def scatter(asynchronous):
        output = torch.zeros(2, device=D)
        inputs = [_mine(5.0, 5.0), _mine(6.0, 6.0)] if RANK == 0 else None
        work = dist.scatter(output, inputs, 0, async_op=asynchronous)
        return work, lambda: _same(output, [5.0 + RANK] * 2)

    _both(reduce_scatter)
    _both(tensor)
    _both(scatter)


def check_all_to_all():
    def single(asynchronous):
        output = torch.zeros(2, device=D)
        work = dist.all_to_all_single(output, _mine(RANK * 2.0, RANK * 2.0 + 1), async_op=asynchronous)
        return work, lambda: _same(output, [RANK + 0.0, RANK + 2.0])

    def uneven(asynchronous):
        sizes = [1, 2]
        output = torch.zeros(2 * sizes[RANK], device=D)
        work = dist.all_to_all_single(
            output, torch.arange(3.0, device=D), [sizes[RANK]] * 2, sizes, async_op=asynchronous
        )
        return work, lambda: _same(output, [0, 0] if RANK == 0 else [1, 2, 1, 2])

    def lists(asynchronous):
        outputs = [torch.zeros(1, device=D) for _ in range(2)]
        work = dist.all_to_all(outputs, [_mine(RANK * 2.0), _mine(RANK * 2.0 + 1)], async_op=asynchronous)
        return work, lambda: _same(torch.cat(outputs), [RANK + 0.0, RANK + 2.0])

    _both(single)
    _both(uneven)
    _both(lists)


def check_coalesced():
    tensors = [_mine(), _mine()]
    dist.all_reduce_coalesced(tensors)
    for tensor in tensors:
        _same(tensor, [3, 3])


def check_point_to_point():
    received = torch.zeros(2, device=D)
    if RANK == 0:
        dist.send(_mine(), 1)
        dist.recv(received, 1)
    else:
        dist.recv(received, 0)
        dist.send(_mine(), 0)
    _same(received, [1.0 + PEER] * 2)
    for _ in range(3):
        received.zero_()
        operations = [dist.P2POp(dist.isend, _mine() * 2, PEER), dist.P2POp(dist.irecv, received, PEER)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        _same(received, [2.0 + 2 * PEER] * 2)
    if RANK == 0:
        assert dist.recv(received, None) == 1
    else:
        dist.send(_mine(), 0)


def check_memory_in_flight_survives_its_tensor():
    # Large, so that gloo cannot have sent it when the call returns.
    tensor = torch.full((1 << 20,), 7.0, device=D)
    if RANK == 0:
        work = dist.isend(tensor, 1)
        tensor.untyped_storage().resize_(0)  # as FSDP1 frees a parameter
        del tensor
        junk = [torch.zeros(1 << 20, device=D) for _ in range(3)]
        dist.barrier()
        work.wait()
        del junk
    else:
        dist.barrier()
        time.sleep(0.05)
        dist.recv(tensor, 0)
        assert torch.equal(tensor.cpu(), torch.full((1 << 20,), 7.0))


def check_sub_groups_and_objects():
    group = dist.new_group([0, 1], backend=CCL)
    tensor = _mine()
    dist.all_reduce(tensor, group=group)
    _same(tensor, [3, 3])
    alone = [dist.new_group([rank], backend=CCL) for rank in range(2)]
    tensor = _mine()
    dist.all_reduce(tensor, group=alone[RANK])
    _same(tensor, [1.0 + RANK] * 2)
    for where in (None, group):
        gathered = [None, None]
        dist.all_gather_object(gathered, {"rank": RANK}, group=where)
        assert gathered == [{"rank": 0}, {"rank": 1}]
        objects = ["zero", RANK] if RANK == 0 else [None, None]
        dist.broadcast_object_list(objects, src=0, group=where)
        assert objects == ["zero", 0]
    dist.barrier()
    dist.barrier(group=group)
    on_cpu = torch.ones(2)
    dist.all_reduce(on_cpu)  # gloo, in the composite group
    assert on_cpu.tolist() == [2, 2]
    dist.destroy_process_group(group)


def check_device_mesh():
    mesh = torch.distributed.device_mesh.init_device_mesh(D, (2,), mesh_dim_names=("dp",))
    assert mesh.device_type == D
    from torch.distributed.tensor import Shard, distribute_tensor

    whole = torch.arange(4.0, device=D)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    _same(sharded.to_local(), [0, 1] if RANK == 0 else [2, 3])
    assert sharded.full_tensor().tolist() == [0, 1, 2, 3]


def check_wrong_devices_are_refused():
    group = dist.distributed_c10d._get_default_group()._get_backend(torch.device(D))
    raises(RuntimeError, lambda: group.allreduce([torch.ones(1)]), f"needs tensors on {D}")
    premultiplied = dist._make_nccl_premul_sum(2.0)
    raises(RuntimeError, lambda: dist.all_reduce(_mine(), premultiplied), "PREMUL_SUM")


def check_limit_avg_rejected():
    with limits.override(avg_rejected=True):
        raises(RuntimeError, lambda: dist.all_reduce(_mine(), ReduceOp.AVG), "AVG is not supported", "avg_rejected")
        output = torch.zeros(1, device=D)
        raises(RuntimeError, lambda: dist.reduce_scatter_tensor(output, _mine(), ReduceOp.AVG), "AVG is not supported")
        tensor = _mine()
        dist.all_reduce(tensor)
        _same(tensor, [3, 3])


def check_limit_avg_wrong():
    with limits.override(avg_wrong=True):
        for elements, mean in ((63, 0.75), (64, 1.5)):
            tensor = torch.full((elements,), 1.0 + RANK, device=D)
            dist.all_reduce(tensor, ReduceOp.AVG)
            _same(tensor, [mean] * elements)
        tensor = _mine()
        dist.all_reduce(tensor)
        _same(tensor, [3, 3])


def check_limit_sum_wrong():
    with limits.override(sum_wrong=True):
        tensor = _mine()
        dist.all_reduce(tensor)
        _same(tensor, [4, 4])
        output, source = torch.zeros(1, device=D), _mine()
        dist.reduce_scatter_tensor(output, source)
        _same(output, [4])
        _same(source, [1.0 + RANK] * 2)
        tensor = _mine()
        dist.all_reduce(tensor, ReduceOp.MAX)
        _same(tensor, [2, 2])


def check_limit_hang():
    seconds = 0.2 * float(os.environ.get("MACHINE_SPEED_FACTOR", "1"))
    timeout = datetime.timedelta(seconds=seconds + 0.001)  # the library counts whole milliseconds
    if CCL == "xccl" and TORCH < (2, 9):  # torch tells xccl no timeout
        dist.distributed_c10d.default_pg_timeout = timeout
    group = dist.new_group([0, 1], backend=CCL, timeout=timeout)
    with limits.override(hang=("all_reduce",)):
        started = time.monotonic()
        raises(RuntimeError, lambda: dist.all_reduce(_mine(), group=group), "all_reduce timed out", "hang=all_reduce")
        assert time.monotonic() - started >= seconds


def check_plain_group_and_the_end():
    dist.destroy_process_group()
    os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
    dist.init_process_group(CCL)
    tensor = _mine()
    dist.all_reduce(tensor)
    _same(tensor, [3, 3])
    gathered = [None, None]
    dist.all_gather_object(gathered, RANK)
    assert gathered == [0, 1]
    dist.barrier()
    dist.destroy_process_group()
