# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``nested``: nested tensors of jagged layout, in which verl keeps sequences of different length."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

from verl_hw_core import upstream
from verl_hw_core.training import jagged
from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import require_close, require_equal
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import CheckSkipped, CheckWarned, require

_BLOCKS = "batches without padding (the engines' input)"
_LENGTHS = (3, 1, 5)


def _rows(width: int = 4) -> list[Any]:
    starts = (100 * number for number in range(len(_LENGTHS)))
    return [
        torch.arange(length * width, dtype=torch.float32).reshape(length, width) + start
        for length, start in zip(_LENGTHS, starts, strict=True)
    ]


def _made(bench: Bench, width: int = 4) -> Any:
    return torch.nested.as_nested_tensor([row.to(bench.device) for row in _rows(width)], layout=torch.jagged)


def _require_rows(nested: Any, rows: list[Any], what: str) -> None:
    found = nested.unbind()
    require(len(found) == len(rows), f"{what} has {len(found)} rows", str(len(rows)))
    for number, (row, wanted) in enumerate(zip(found, rows, strict=True)):
        require_equal(row, wanted, f"row {number} of {what}")


@check("nested.make", blocks=_BLOCKS)
def make(bench: Bench) -> None:
    """A jagged tensor is made from rows, and from values and offsets, and taken apart again."""
    made = _made(bench)
    require(made.device.type == bench.type, f"it is on {made.device}", bench.type)
    _require_rows(made, _rows(), "a tensor made from rows")
    copied = torch.nested.nested_tensor(_rows(), layout=torch.jagged, device=bench.device)
    _require_rows(copied, _rows(), "a tensor made from host rows")
    offsets = torch.tensor([0, 3, 4, 9], device=bench.device)
    joined = torch.nested.nested_tensor_from_jagged(torch.cat(_rows()).to(bench.device), offsets)
    _require_rows(joined, _rows(), "a tensor made from values and offsets")
    require_equal(joined.offsets(), torch.tensor([0, 3, 4, 9]), "the offsets")


@check("nested.to_host", blocks=f"{_BLOCKS}: wrong numbers after a copy to the host")
def to_host(bench: Bench) -> None:
    """A jagged tensor is copied to the host and back whole."""
    made = _made(bench) * 2
    _require_rows(made.to("cpu"), [row * 2 for row in _rows()], "the copy on the host")
    _require_rows(made.to("cpu").to(bench.device), [row * 2 for row in _rows()], "the copy back on the device")


@check("nested.padding", blocks="computing log-probabilities of a padded batch")
def padding(bench: Bench) -> None:
    """A jagged tensor is padded (_jagged_to_padded_dense_forward)."""
    wanted = torch.full((3, 5, 4), -1.0)
    for number, row in enumerate(_rows()):
        wanted[number, : len(row)] = row

    def pads() -> None:
        require_equal(_made(bench).to_padded_tensor(-1.0), wanted, "the padded tensor")

    _with_our_kernels(bench, pads)


@check("nested.from_padded", blocks="training on a padded batch")
def from_padded(bench: Bench) -> None:
    """A padded tensor becomes jagged, and padding has a gradient (_padded_dense_to_jagged_forward)."""
    offsets = torch.tensor([0, 3, 4, 9], device=bench.device)
    padded = torch.zeros(3, 5, 4)
    for number, row in enumerate(_rows()):
        padded[number, : len(row)] = row

    def unpads() -> None:
        found = torch.ops.aten._padded_dense_to_jagged_forward(padded.to(bench.device), [offsets], 9)
        require_equal(found, torch.cat(_rows()), "the values")
        values = torch.zeros(9, 4, device=bench.device, requires_grad=True)
        jagged = torch.nested.nested_tensor_from_jagged(values, offsets, min_seqlen=1, max_seqlen=5)
        (jagged.to_padded_tensor(0.0) * padded.to(bench.device)).sum().backward()
        require_equal(values.grad, torch.cat(_rows()), "the gradient of padding")

    _with_our_kernels(bench, unpads)


def _with_our_kernels(bench: Bench, attempt: Callable[[], None]) -> None:
    """Try as it is; where the stack lacks an operator, as verl-hw's engines complete it, which is a warning."""
    try:
        attempt()
    except (NotImplementedError, RuntimeError) as error:
        missing = f"{type(error).__name__}: {error}".partition("\n")[0]
        jagged.complete(bench.type)
        try:
            attempt()
        finally:
            upstream.restore(jagged.ROW)  # the next check sees the stack as it is
        raise CheckWarned(f"{missing}; verl-hw does it by other operations", "torch's own operator") from error


@check("nested.operators", blocks=_BLOCKS)
def operators(bench: Bench) -> None:
    """Operators on a jagged tensor, and their gradients, are those of its values."""
    rows = [row.double() / 100 for row in _rows()]
    weight = torch.randn(6, 4, generator=bench.generator(1), dtype=torch.float64)
    reference = weight.clone().requires_grad_()
    wanted = torch.nn.functional.silu(torch.nn.functional.linear(torch.cat(rows), reference)) + 1
    wanted.sum().backward()
    there = weight.float().to(bench.device).requires_grad_()
    made = torch.nested.as_nested_tensor([row.float().to(bench.device) for row in rows], layout=torch.jagged)
    found = torch.nn.functional.silu(torch.nn.functional.linear(made, there)) + 1
    found.values().sum().backward()
    require_close(found.values(), wanted, torch.float32, "values")
    require_close(there.grad, reference.grad, torch.float32, "gradient")


@check("nested.tensordict", blocks=_BLOCKS)
def tensordict(bench: Bench) -> None:
    """A TensorDict with jagged and plain tensors is copied to the host and back whole."""
    if find_spec("tensordict") is None:
        raise CheckSkipped("tensordict is not installed")
    from tensordict import TensorDict

    plain = torch.arange(6, dtype=torch.float32).reshape(3, 2)
    made = TensorDict({"rows": _made(bench), "plain": plain.to(bench.device)}, batch_size=[3])
    host = made.to("cpu")
    _require_rows(host["rows"], _rows(), "the rows on the host")
    require_equal(host["plain"], plain, "the plain tensor on the host")
    back = host.to(bench.device)
    require(back["plain"].device.type == bench.type, f"it is on {back['plain'].device}", bench.type)
    _require_rows(back["rows"], _rows(), "the rows back on the device")
