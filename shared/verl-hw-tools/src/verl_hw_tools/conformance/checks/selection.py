# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``selection``: ``set_device`` really selects. Where it does not, all ranks share one card without a word."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import CheckFailed, CheckSkipped, require

_BLOCKS = "every training with more than one device: all ranks would use device 0"


def _needs_two(bench: Bench) -> None:
    if bench.device_count < 2:
        raise CheckSkipped("needs two devices; one is visible")


@contextmanager
def _kept(bench: Bench) -> Iterator[None]:
    """The checks behind this one find the device that they had."""
    before = bench.module.current_device()
    try:
        yield
    finally:
        bench.module.set_device(before)


@check("selection.current_device", blocks=_BLOCKS)
def current_device(bench: Bench) -> None:
    """set_device changes current_device."""
    _needs_two(bench)
    with _kept(bench):
        for ordinal in reversed(range(bench.device_count)):
            bench.module.set_device(ordinal)
            found = bench.module.current_device()
            require(found == ordinal, f"after set_device({ordinal}), current_device() is {found}", str(ordinal))


@check("selection.tensors", blocks=_BLOCKS)
def tensors(bench: Bench) -> None:
    """Tensors made without an ordinal are on the selected device."""
    _needs_two(bench)
    with _kept(bench):
        for ordinal in reversed(range(bench.device_count)):
            bench.module.set_device(ordinal)
            made = {
                "torch.ones": torch.ones(3, device=bench.type),
                "a copy": torch.ones(3).to(bench.type),
                "an operator's result": torch.ones(3, device=bench.type) + 1,
            }
            for what, tensor in made.items():
                found = tensor.device.index
                require(found == ordinal, f"after set_device({ordinal}), {what} is on {found}", str(ordinal))
                require(tensor.cpu().sum().item() in (3.0, 6.0), f"{what} holds {tensor.tolist()}", "its values")


@check("selection.explicit", blocks=_BLOCKS)
def explicit(bench: Bench) -> None:
    """A tensor's own ordinal wins over the selected device."""
    _needs_two(bench)
    with _kept(bench):
        bench.module.set_device(0)
        tensor = torch.arange(4, device=bench.at(1))
        result = tensor * 2
        require(result.device.index == 1, f"the product is on {result.device}", str(bench.at(1)))
        require(result.tolist() == [0, 2, 4, 6], f"the product is {result.tolist()}", "[0, 2, 4, 6]")
        found = bench.module.current_device()
        require(found == 0, f"working on device 1 left current_device() at {found}", "0")


@check("selection.memory", blocks=_BLOCKS)
def memory(bench: Bench) -> None:
    """Memory is taken on the selected device and on no other."""
    _needs_two(bench)
    if not hasattr(bench.module, "memory_allocated"):
        raise CheckSkipped(f"torch.{bench.type} has no memory_allocated")
    with _kept(bench):
        bench.module.set_device(1)
        before = [bench.module.memory_allocated(ordinal) for ordinal in (0, 1)]
        held = torch.ones(1 << 20, device=bench.type)
        grown = [bench.module.memory_allocated(ordinal) - start for ordinal, start in enumerate(before)]
        require(
            grown[1] >= held.nbytes and grown[0] == 0, f"devices 0 and 1 grew by {grown} bytes", f"0, {held.nbytes}"
        )


@check("selection.out_of_range", blocks="a clear error for a wrong visibility mask")
def out_of_range(bench: Bench) -> None:
    """Selecting a device that is not there is an error."""
    count = bench.device_count
    with _kept(bench):
        try:
            bench.module.set_device(count)
            torch.ones(1, device=bench.type).cpu()
        except Exception:  # noqa: BLE001
            return
        raise CheckFailed(f"set_device({count}) was accepted with {count} devices", "an error")


@check("selection.ranks", blocks=_BLOCKS, processes=2)
def ranks(bench: Bench) -> None:
    """Each rank works on a device of its own."""
    mine = torch.ones(1, device=bench.type).device.index
    found: list[int | None] = [None] * bench.world_size
    dist.all_gather_object(found, mine)
    wanted = list(range(bench.world_size))
    require(found == wanted, f"the ranks' tensors are on devices {found}", f"{wanted}")
