# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``memory``: what verl reads and sets of the device's memory. verl-hw has a fallback for most of it."""

from collections.abc import Callable
from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import CheckSkipped, CheckWarned, require

_LOG = "memory log and metrics"
_SIZE = 4 << 20


def _function(bench: Bench, name: str) -> Callable[..., Any]:
    found = getattr(bench.module, name, None)
    if found is None:
        raise CheckSkipped(f"torch.{bench.type} has no {name} (see module.{name})")
    function: Callable[..., Any] = found
    return function


@check("memory.mem_get_info", blocks="memory log, rollout memory budget")
def mem_get_info(bench: Bench) -> None:
    """mem_get_info gives plausible free and total memory."""
    free, total = _function(bench, "mem_get_info")()
    require(total > 64 << 20, f"total memory is {total} bytes", "the device's memory")
    require(0 < free <= total, f"free memory is {free} of {total} bytes", "more than nothing, at most the total")


@check("memory.mem_get_info_falls", blocks="rollout memory budget: the engine takes too much")
def mem_get_info_falls(bench: Bench) -> None:
    """Free memory falls when memory is taken."""
    query = _function(bench, "mem_get_info")
    before = query()[0]
    held = torch.ones(32 << 20, dtype=torch.float32, device=bench.device)
    fallen = before - query()[0]
    # It need not fall by the tensor's size: an allocator may have had the memory already.
    require(fallen >= 0, f"free memory rose by {-fallen} bytes while {held.nbytes} were taken", "it falls, or stays")


@check("memory.allocated", blocks=_LOG)
def allocated(bench: Bench) -> None:
    """memory_allocated follows what is held."""
    query = _function(bench, "memory_allocated")
    before = query()
    held = torch.ones(_SIZE, dtype=torch.uint8, device=bench.device)
    during = query()
    del held
    after = query()
    require(during - before >= _SIZE, f"{_SIZE} bytes made it grow by {during - before}", "the size at least")
    require(after <= during - _SIZE, f"releasing {_SIZE} bytes made it fall by {during - after}", "the size at least")


@check("memory.reserved", blocks=_LOG)
def reserved(bench: Bench) -> None:
    """memory_reserved is at least memory_allocated."""
    held = torch.ones(_SIZE, dtype=torch.uint8, device=bench.device)
    found = _function(bench, "memory_reserved")(), _function(bench, "memory_allocated")()
    require(found[0] >= found[1] >= held.nbytes, f"reserved {found[0]}, allocated {found[1]}", "reserved >= allocated")


@check("memory.peak", blocks="memory metrics of a training step")
def peak(bench: Bench) -> None:
    """max_memory_allocated keeps the peak until it is reset."""
    reset, query = _function(bench, "reset_peak_memory_stats"), _function(bench, "max_memory_allocated")
    reset()
    start = query()
    held = torch.ones(_SIZE, dtype=torch.uint8, device=bench.device)
    del held
    risen = query()
    require(risen - start >= _SIZE, f"{_SIZE} bytes raised the peak by {risen - start}", "the size at least")
    reset()
    require(query() < risen, f"after the reset the peak is {query()}", f"less than {risen}")


@check("memory.empty_cache", blocks="memory between rollout and training")
def empty_cache(bench: Bench) -> None:
    """empty_cache leaves what is held alone."""
    held = torch.arange(1000, device=bench.device)
    _function(bench, "empty_cache")()
    require(int(held.sum()) == 499500, f"the sum of a held tensor is {int(held.sum())}", "499500")


@check("memory.properties", blocks="memory report")
def properties(bench: Bench) -> None:
    """get_device_properties gives the name and total_memory."""
    found = _function(bench, "get_device_properties")(bench.device.index)
    total = getattr(found, "total_memory", 0)
    require(total > 0 and bool(found.name), f"name {found.name!r}, total_memory {total}", "a name and a size")


@check("memory.fraction", blocks="memory limit of a process")
def fraction(bench: Bench) -> None:
    """set_per_process_memory_fraction takes 1.0."""
    _function(bench, "set_per_process_memory_fraction")(1.0)


@check("memory.statistics_reset", blocks="aggressive memory release")
def statistics_reset(bench: Bench) -> None:
    """The statistics can be reset."""
    _function(bench, "reset_accumulated_memory_stats")()
    _function(bench, "reset_peak_memory_stats")()


@check("memory.storage_resize", blocks="FSDP1: parameters are freed between uses")
def storage_resize(bench: Bench) -> None:
    """A tensor's storage can be freed and made again."""
    tensor = torch.ones(1000, device=bench.device)
    storage = tensor.untyped_storage()
    size = storage.size()
    storage.resize_(0)
    require(storage.size() == 0, f"its size is {storage.size()} after resize_(0)", "0")
    storage.resize_(size)
    tensor.fill_(2.0)
    require(tensor.sum().item() == 2000.0, f"the sum is {tensor.sum().item()}", "2000.0")


@check("memory.out_of_memory", blocks="a clear error, and retrying with less, when memory runs out")
def out_of_memory(bench: Bench) -> None:
    """Asking for too much raises torch.OutOfMemoryError, and the device goes on working."""
    total = int(_function(bench, "mem_get_info")()[1])
    if total <= 0:
        raise CheckSkipped("the device does not tell its memory (see memory.mem_get_info)")
    try:
        torch.empty(total * 2, dtype=torch.uint8, device=bench.device)
    except torch.OutOfMemoryError:
        found = "torch.OutOfMemoryError"
    except RuntimeError as error:
        found = f"{type(error).__name__}: {error}".partition("\n")[0]
    else:
        found = f"{total * 2} bytes were given on a device of {total}"
    require(torch.ones(8, device=bench.device).sum().item() == 8.0, "the device does not work any more", "it goes on")
    if found != "torch.OutOfMemoryError":
        raise CheckWarned(found, "torch.OutOfMemoryError, which callers can tell from other errors")
