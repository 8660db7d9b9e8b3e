# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``dtypes``: the types that verl uses, and tensors seen as bytes, as weight transfer does."""

from collections.abc import Callable
from typing import Any

import torch

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import SHORT_NAMES, require_equal
from verl_hw_tools.conformance.registry import Check, add, check
from verl_hw_tools.conformance.verdicts import CheckWarned

_NEEDED_FOR = {
    torch.float32: "master weights, losses",
    torch.bfloat16: "training and rollout in bf16",
    torch.float16: "training and rollout in fp16",
    torch.int64: "token ids",
    torch.int32: "sequence offsets",
    torch.uint8: "weight transfer, random states",
    torch.bool: "masks",
}
_BYTES = "weight transfer to the rollout, checkpoint engines"


def _numbers(dtype: Any) -> Any:
    return (torch.arange(24) % 7).reshape(4, 6).to(dtype)


def _works(bench: Bench, dtype: Any) -> None:
    host = _numbers(dtype)
    tensor = host.to(bench.device)
    require_equal(tensor, host, "a copy to the device and back")
    require_equal(torch.zeros(3, dtype=dtype, device=bench.device), torch.zeros(3, dtype=dtype), "zeros")
    require_equal(torch.full((3,), 1, dtype=dtype, device=bench.device), torch.full((3,), 1, dtype=dtype), "full")
    require_equal(tensor == tensor.flip(0), host == host.flip(0), "a comparison")
    if dtype is not torch.bool:
        require_equal(tensor + tensor, host + host, "a sum")
    for other in (torch.float32, torch.int64, torch.bool):
        require_equal(tensor.to(other), host.to(other), f"conversion to {SHORT_NAMES[other]}")
        require_equal(
            _numbers(other).to(bench.device).to(dtype), _numbers(other).to(dtype), f"from {SHORT_NAMES[other]}"
        )


def _check_of(dtype: Any) -> Callable[[Bench], None]:
    return lambda bench: _works(bench, dtype)


for _dtype, _needed in _NEEDED_FOR.items():
    add(
        Check(
            id=f"dtypes.{SHORT_NAMES[_dtype]}",
            title=f"{SHORT_NAMES[_dtype]} is made, copied, compared, added and converted",
            blocks=_needed,
            run=_check_of(_dtype),
        )
    )


@check("dtypes.fp64", blocks="fp16 training (the gradient scaler needs fp64); verl-hw refuses fp16 there")
def fp64(bench: Bench) -> None:
    """fp64 is there."""
    try:
        _works(bench, torch.float64)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        # Some parts have none; that is no fault, and only fp16 training needs it.
        raise CheckWarned(f"no fp64: {str(error).partition(chr(10))[0]}", "float64 tensors") from error


def _bytes_of(dtype: Any) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        host = _numbers(dtype)
        tensor = host.to(bench.device)
        as_bytes = tensor.view(torch.uint8)
        require_equal(as_bytes, host.view(torch.uint8), "the bytes")
        require_equal(as_bytes.view(dtype), host, "the tensor made from its bytes")
        # As verl packs a bucket: weights behind each other in one byte buffer.
        buffer = torch.zeros(64 + tensor.nbytes, dtype=torch.uint8, device=bench.device)
        buffer[64:].copy_(tensor.view(-1).view(torch.uint8))
        require_equal(buffer[64:].view(dtype).view(host.shape), host, "a tensor from its place in a byte buffer")
        buffer[64:].view(dtype).view(host.shape).zero_()
        require_equal(buffer.sum(), torch.tensor(0), "the sum of the buffer after zeroing a view of it")

    return run


for _dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int8):
    add(
        Check(
            id=f"dtypes.bytes.{SHORT_NAMES[_dtype]}",
            title=f"{SHORT_NAMES[_dtype]} is seen as bytes, and bytes as {SHORT_NAMES[_dtype]}",
            blocks=_BYTES,
            run=_bytes_of(_dtype),
        )
    )
