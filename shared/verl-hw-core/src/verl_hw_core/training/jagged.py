# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Jagged batches on the device: they can be made and padded there, and are complete when they are back on the host.

verl takes care of making and copying them for npu only, while it is imported. It pads jagged tensors wherever a model
runs with padding (``to_padded_tensor``, one operator) and trains through it, which needs the reverse (another
operator). Some stacks have none of the two, some only the first (torch-xpu-ops #2424 and #2905). torch's derivative of
each is the other one, so the two kernels here, from torch operations only, are all that is needed.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch

from verl_hw_core import upstream

logger = logging.getLogger("verl_hw_core")

ROW = "jagged-conversions"
"""Ledger row of the kernels."""

CONSTRUCTORS_ROW = "nested-constructors"
CONSTRUCTORS = ("nested_tensor", "as_nested_tensor")
"""Functions of ``torch.nested`` that verl makes jagged tensors with and that torch extensions are known to wrap."""


def unwrap_constructors(device: str) -> None:
    """Undo a vendor's wrapper around torch's constructors where it refuses the device type and torch's own does not."""
    if not upstream.check(CONSTRUCTORS_ROW):
        return
    for name in CONSTRUCTORS:
        wrapper = getattr(torch.nested, name)
        own = getattr(wrapper, "__wrapped__", None)
        if own is None:
            continue
        refusal = _refusal(wrapper, device)
        if refusal is not None and _refusal(own, device) is None:
            logger.info("torch.nested.%s refuses device %s (%s): torch's own is used", name, device, refusal)
            upstream.applies(CONSTRUCTORS_ROW)(upstream.replace)(CONSTRUCTORS_ROW, torch.nested, name, own)


def _refusal(constructor: Any, device: str) -> str | None:
    """Why ``constructor`` cannot make a jagged tensor on the device, or None."""
    try:
        constructor([torch.zeros(1, device=device), torch.zeros(2, device=device)], layout=torch.jagged)
    except Exception as error:  # noqa: BLE001 - a vendor's wrapper refuses with an exception of its own
        return f"{type(error).__name__}: {error}"
    return None


@upstream.applies("tensordict-synchronization")
def synchronize_host_copies(platform: Any) -> None:
    """Let tensordict wait for the device of verl's platform where it would wait for another one, or for none.

    ``TensorDict.to("cpu")`` copies without blocking, then waits for the first device type that it finds: cuda, mps,
    xpu, then a PrivateUse1 backend. With a CUDA migration shim, or a second accelerator in the machine, that is not
    the one that copies.
    """
    from tensordict import base

    if base._get_available_device_type() != platform.device_name:
        _platforms[:] = [platform]
        upstream.put("tensordict-synchronization")


_platforms: list[Any] = []


@upstream.replaces("tensordict-synchronization", "tensordict.base:TensorDictBase._sync_all")
def synchronize(own: Callable[[Any], None], tensors: Any) -> None:
    """tensordict's ``_sync_all``, after the platform's device has come to its end."""
    _platforms[0].synchronize()
    own(tensors)


def jagged_to_padded(
    values: torch.Tensor, offsets: Sequence[torch.Tensor], max_lengths: Sequence[int], padding_value: float = 0.0
) -> torch.Tensor:
    """``aten::_jagged_to_padded_dense_forward`` with one jagged dimension.

    Args:
        values: (tokens, width), the rows one after the other.
        offsets: One tensor, (rows + 1,): where each row starts, and where the last one ends.
        max_lengths: One number: the padded length; what is longer is cut off.
        padding_value: What fills up.

    Returns:
        (rows, padded length, width).
    """
    (starts,), (length,) = offsets, max_lengths
    places, real = _places(starts, length)
    rows = starts.shape[0] - 1
    fill = padding_value if values.is_floating_point() else int(padding_value)
    if values.shape[0] == 0:
        return values.new_full((rows, length, values.shape[1]), fill)
    taken = values.index_select(0, torch.where(real, places, 0).flatten()).view(rows, length, values.shape[1])
    return taken.masked_fill(~real[..., None], fill)


def padded_to_jagged(
    dense: torch.Tensor, offsets: Sequence[torch.Tensor], total_length: int | None = None
) -> torch.Tensor:
    """``aten::_padded_dense_to_jagged_forward`` with one jagged dimension.

    Args:
        dense: (rows, padded length, width).
        offsets: One tensor, (rows + 1,): where each row starts, and where the last one ends.
        total_length: Tokens of the result, None for where the last row ends.

    Returns:
        (tokens, width); zero where no row has a token.
    """
    (starts,) = offsets
    tokens = int(starts[-1]) if total_length is None else total_length
    places, real = _places(starts, dense.shape[1])
    # Padding goes to a place of its own behind the tokens.
    target = torch.where(real & (places < tokens), places, tokens).flatten()
    return dense.new_zeros(tokens + 1, dense.shape[2]).index_copy(0, target, dense.flatten(0, 1))[:tokens]


def _places(starts: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Place of each padded position among the values, (rows, padded length), and whether it is real."""
    columns = torch.arange(length, device=starts.device, dtype=starts.dtype)
    places = starts[:-1, None] + columns
    return places, places < starts[1:, None]


def complete(device: str) -> tuple[str, ...]:
    """Give a device type our kernels for what it cannot do; a second call changes nothing.

    Returns:
        The operators that it lacks or computes wrongly.
    """
    lacking = []
    for name, kernel, attempt in (
        ("_jagged_to_padded_dense_forward", jagged_to_padded, _pads),
        ("_padded_dense_to_jagged_forward", padded_to_jagged, _has_gradient),
    ):
        why = _failure(attempt, device)
        if why:
            logger.info("torch.ops.aten.%s on %s: %s: other operations do its work", *(name, device, why))
            upstream.applies(ROW)(upstream.add_kernel)(ROW, f"aten::{name}", device, kernel)
            lacking.append(name)
    return tuple(lacking)


def _failure(attempt: Callable[[str], bool], device: str) -> str:
    try:
        return "" if attempt(device) else "wrong numbers"
    except Exception as error:  # noqa: BLE001 - a vendor's stack refuses with an exception of its own
        return f"{type(error).__name__}: {error}".partition("\n")[0]


_OFFSETS = (0, 2, 2, 5)


def _pads(device: str) -> bool:
    """Whether numbers, token ids and masks are padded right."""
    values = torch.arange(1, 11).view(5, 2)
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool):
        expected = jagged_to_padded(values.to(dtype), [torch.tensor(_OFFSETS)], [3])
        if not torch.equal(_padded(values.to(dtype).to(device)).cpu(), expected):
            return False
    return True


def _has_gradient(device: str) -> bool:
    """Whether the gradient of padding is that of the values."""
    values = torch.ones(5, 2, device=device, requires_grad=True)
    weight = torch.arange(18, dtype=torch.float32).view(3, 3, 2)
    (_padded(values) * weight.to(device)).sum().backward()
    expected = padded_to_jagged(weight, [torch.tensor(_OFFSETS)], 5)
    return values.grad is not None and torch.equal(values.grad.cpu(), expected)


def _padded(values: torch.Tensor) -> torch.Tensor:
    """Pad rows of 2, 0 and 3 tokens as verl does."""
    offsets = torch.tensor(_OFFSETS, device=values.device)
    jagged = torch.nested.nested_tensor_from_jagged(values, offsets, min_seqlen=0, max_seqlen=3)
    padded: torch.Tensor = jagged.to_padded_tensor(0)
    return padded
