# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's reductions with AVG done as sum-then-divide for groups that need it (ledger row ``reduce-avg``).

Everything that is not an AVG on the accelerator goes straight to torch. Replaced are the functions in
``torch.distributed`` and in the module that defines them, by the same object.

An average is divided after the sum, with two exceptions in which the contributions are divided before it: an
asynchronous one, so that the result is an average for whoever waits for it, by the work, its future, the device or a
stream; and one in float16, whose sum can exceed 65504 where the average does not.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from verl_hw_core import upstream
from verl_hw_core.errors import ReductionError
from verl_hw_core.reduction.decision import decide, is_known_to_need_sum
from verl_hw_core.reduction.probe import ROW, places

_devices: set[str] = set()


def install(device_type: str | None = None) -> None:
    """Replace torch.distributed's reductions for a device; a second call changes nothing.

    Args:
        device_type: torch device type whose tensors are concerned, None for that of verl's platform.
    """
    from verl.plugin.platform import get_platform

    _devices.add(device_type or str(get_platform().device_name))
    upstream.apply(ROW)


def uninstall() -> None:
    """Put torch's own functions back."""
    _devices.clear()
    upstream.restore(ROW)


def _divide(result: Any, ranks: int) -> None:
    """Divide in place, unseen by autograd, as a collective is."""
    with torch.inference_mode(result.is_inference()), torch.no_grad():
        result.detach().div_(ranks)


def _divided(contribution: Any, ranks: int) -> Any:
    """Return a copy of one tensor or of a list of tensors, divided. A backend keeps what it reads until it is done."""
    if isinstance(contribution, (list, tuple)):
        return [_divided(part, ranks) for part in contribution]
    with torch.no_grad():
        return contribution.detach() / ranks


def _holds_result(name: str, given: dict[str, Any]) -> bool:
    """Whether this rank gets a result: with ``reduce`` only the destination does."""
    if name != "reduce":
        return True
    if given.get("group_dst") is not None:
        return bool(given["group_dst"] == dist.get_rank(given.get("group")))
    return bool(given["dst"] == dist.get_rank())


def _average(own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do what torch's ``own`` does, whose first parameter is the tensor that holds the result."""
    signature = _signature(own)
    given = signature.bind(*args, **kwargs).arguments
    result, group = given[next(iter(signature.parameters))], given.get("group")
    if given.get("op") != dist.ReduceOp.AVG or not _needs_sum(result, group):
        return own(*args, **kwargs)
    _refuse_integers(own.__name__, result)
    ranks, holds_result = dist.get_world_size(group), _holds_result(own.__name__, given)
    given["op"] = dist.ReduceOp.SUM
    if given.get("async_op") or result.dtype == torch.float16:
        parameters = list(signature.parameters)
        if parameters[1].startswith("input"):
            given[parameters[1]] = _divided(given[parameters[1]], ranks)
        elif holds_result:
            _divide(result, ranks)
        else:
            given[parameters[0]] = _divided(result, ranks)
        return own(**given)
    work = own(**given)
    if holds_result:
        _divide(result, ranks)
    return work


_signature = functools.cache(inspect.signature)


@upstream.replaces(ROW, *places("all_reduce"))
def all_reduce(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """torch's, as the others below."""
    return _average(own, args, kwargs)


@upstream.replaces(ROW, *places("reduce"))
def reduce(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: D103
    return _average(own, args, kwargs)


@upstream.replaces(ROW, *places("reduce_scatter"))
def reduce_scatter(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: D103
    return _average(own, args, kwargs)


@upstream.replaces(ROW, *places("reduce_scatter_tensor"))
def reduce_scatter_tensor(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: D103
    return _average(own, args, kwargs)


@upstream.replaces(ROW, *places("reduce_scatter_single"))
def reduce_scatter_single(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: D103
    return _average(own, args, kwargs)


def _needs_sum(result: Any, group: Any) -> bool:
    """Whether this rank is to average ``result`` in ``group`` by sum-then-divide."""
    if not isinstance(result, torch.Tensor) or result.device.type not in _devices:
        return False
    if distributed_c10d._rank_not_in_group(group):
        return False
    group = group if group is not None else distributed_c10d._get_default_group()
    if group in distributed_c10d._world.pg_coalesce_state:
        # Only recorded now and run later by torch: there is no moment to divide, and none to probe.
        if is_known_to_need_sum(group, result.device):
            raise ReductionError(
                "ReduceOp.AVG inside a coalescing context cannot be computed as sum-then-divide, which this group "
                f"needs on {result.device.type}: use ReduceOp.SUM there and divide afterwards"
            )
        return False
    return decide(group, result.device).method == "sum"


def _refuse_integers(name: str, result: Any) -> None:
    if not (result.is_floating_point() or result.is_complex()):
        # torch's own kind of error for an average of integers (gloo).
        raise RuntimeError(f"{name} with ReduceOp.AVG: result type Float can't be cast to {result.dtype}")
