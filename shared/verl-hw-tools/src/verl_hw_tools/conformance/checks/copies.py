# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``copies``: between host and device. A wrong or unfinished copy gives wrong numbers without a word."""

from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import require_equal
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import CheckSkipped, CheckWarned, require

_BLOCKS = "everything: numbers are wrong after a copy"


def _layouts() -> dict[str, Any]:
    base = torch.arange(4 * 6 * 10, dtype=torch.float32).reshape(4, 6, 10)
    return {
        "contiguous": base,
        "transposed": base.transpose(0, 2),
        "every other column": base[..., ::2],
        "a slice with an offset": base[1:3, 2:5, 3:],
        "expanded": base[:, :1].expand(4, 6, 10),
        "permuted and sliced": base.permute(2, 0, 1)[::3],
        "a scalar": base[2, 3, 4],
        "empty": base[:0],
    }


@check("copies.to_device", blocks=_BLOCKS)
def to_device(bench: Bench) -> None:
    """Host tensors of every layout arrive whole."""
    for name, host in _layouts().items():
        require_equal(host.to(bench.device), host, f"{name}, to the device")


@check("copies.to_host", blocks=_BLOCKS)
def to_host(bench: Bench) -> None:
    """Device tensors of every layout arrive whole."""
    for name, (made, host) in _made_on_device(bench).items():
        require_equal(made.cpu(), host, f"{name}, to the host")
        require(made.tolist() == host.tolist(), f"tolist() of {name} differs", "the values")


def _made_on_device(bench: Bench) -> dict[str, tuple[Any, Any]]:
    """The layouts, made on the device out of one plain copy."""
    host = torch.arange(240, dtype=torch.float32).reshape(4, 6, 10)
    there = host.to(bench.device)
    return {
        "transposed": (there.transpose(0, 2), host.transpose(0, 2)),
        "every other column": (there[..., ::2], host[..., ::2]),
        "a slice with an offset": (there[1:3, 2:5, 3:], host[1:3, 2:5, 3:]),
        "expanded": (there[:, :1].expand(4, 6, 10), host[:, :1].expand(4, 6, 10)),
        "permuted and sliced": (there.permute(2, 0, 1)[::3], host.permute(2, 0, 1)[::3]),
    }


@check("copies.into", blocks=f"{_BLOCKS}; loading weights")
def into(bench: Bench) -> None:
    """copy_ writes into a tensor that is not contiguous, with conversion, and beside it nothing."""
    source = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    for target_device, source_device in (("cpu", bench.device), (bench.device, "cpu"), (bench.device, bench.device)):
        for dtype in (torch.float32, torch.bfloat16):
            target = torch.full((8, 6), -1.0, dtype=dtype, device=target_device)
            target.t()[1:4, ::2].copy_(source.to(source_device))
            wanted = torch.full((8, 6), -1.0, dtype=dtype)
            wanted.t()[1:4, ::2].copy_(source)
            require_equal(target, wanted, f"copy_ from {source_device} into a strided view on {target_device}")


@check("copies.contiguous", blocks=_BLOCKS)
def contiguous(bench: Bench) -> None:
    """A contiguous copy, a clone and a reshaped copy keep the values of every layout."""
    for name, (made, host) in _made_on_device(bench).items():
        require_equal(made.contiguous(), host, f"contiguous() of {name}")
        require_equal(made.clone(), host, f"clone() of {name}")
        require_equal(made.reshape(-1), host.reshape(-1), f"reshape() of {name}")


@check("copies.non_blocking", blocks="offload of parameters and optimizer, checkpoints")
def non_blocking(bench: Bench) -> None:
    """Copies with non_blocking are whole after synchronize()."""
    for size in (1, 1000, 1 << 20):
        host = torch.arange(size, dtype=torch.float32)
        there = host.to(bench.device, non_blocking=True)
        back = (there + 1).to("cpu", non_blocking=True)
        bench.module.synchronize()
        require_equal(back, host + 1, f"{size} values, there and back")


@check("copies.reused_source", blocks="data loading: a batch is overwritten while it is copied")
def reused_source(bench: Bench) -> None:
    """A pageable source may be changed as soon as a blocking copy returns."""
    host = torch.zeros(1 << 18)
    there = []
    for number in range(4):
        host.fill_(number)
        there.append(host.to(bench.device))
    for number, tensor in enumerate(there):
        require_equal(tensor, torch.full((1 << 18,), float(number)), f"copy {number}")


@check("copies.pinned", blocks="overlapping copies of offload; pageable memory is used instead")
def pinned(bench: Bench) -> None:
    """Pinned host memory is there, and copies from and to it are whole."""
    host = torch.arange(4096, dtype=torch.float32)
    try:
        source, target = host.pin_memory(), torch.empty_like(host).pin_memory()
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        raise CheckWarned(f"no pinned memory: {str(error).partition(chr(10))[0]}", "pin_memory() works") from error
    there = source.to(bench.device, non_blocking=True)
    target.copy_(there * 2, non_blocking=True)
    bench.module.synchronize()
    require_equal(target, host * 2, "there and back through pinned memory")
    if not source.is_pinned():
        raise CheckWarned("pin_memory() returned memory that is not pinned", "is_pinned() is true")


@check("copies.between_devices", blocks="pipeline parallelism in one process, loading on another device")
def between_devices(bench: Bench) -> None:
    """Tensors of every layout arrive whole on another device."""
    if bench.device_count < 2:
        raise CheckSkipped("needs two devices; one is visible")
    for name, (made, host) in _made_on_device(bench).items():
        moved = made.to(bench.at(1))
        require(moved.device.index == 1, f"{name} is on {moved.device}", str(bench.at(1)))
        require_equal(moved, host, f"{name}, to device 1")


@check("copies.module", blocks="offload of parameters")
def module(bench: Bench) -> None:
    """A module goes to the device and back, its parameters and optimizer with it."""
    layer = torch.nn.Linear(5, 3)
    weight = layer.weight.detach().clone()
    layer.to(bench.device)
    require(layer.weight.device.type == bench.type, f"the weight is on {layer.weight.device}", bench.type)
    require_equal(layer.weight, weight, "the weight on the device")
    layer(torch.ones(2, 5, device=bench.device)).sum().backward()
    layer.to("cpu")
    require(layer.weight.device.type == "cpu", f"the weight is on {layer.weight.device}", "cpu")
    require_equal(layer.weight, weight, "the weight back on the host")
    require(layer.weight.grad is not None, "the gradient is lost", "it moves along")


@check("copies.shared_file", blocks="checkpoints")
def saved(bench: Bench) -> None:
    """torch.save and torch.load keep device tensors, and map them to the host."""
    tensor = torch.arange(12, device=bench.device).reshape(3, 4).t()
    path = bench.folder / "tensor.pt"
    torch.save({"tensor": tensor}, path)
    on_host = torch.load(path, map_location="cpu", weights_only=True)["tensor"]
    require_equal(on_host, tensor, "loaded to the host")
    loaded = torch.load(path, weights_only=True)["tensor"]
    require(loaded.device == tensor.device, f"loaded to {loaded.device}", str(tensor.device))
    require_equal(loaded, tensor, "loaded to the device")
