# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Device and host memory in training: no query stops a run, offloaded tensors are waited for and kept apart.

verl offloads with copies that it does not wait for, and copies back on the same stream. CUDA does that in this order,
from pinned memory. No such promise of another chip is known, and a copy back that came first would train on other
numbers. Parameters and optimizers are waited for on every chip, once an offload. Activations, of which there are many,
are offloaded as on CUDA where a trial keeps the order, and else to pageable memory with a wait for each.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any

from verl_hw_core import upstream

logger = logging.getLogger("verl_hw_core")

UNKNOWN = ("?", "?", "?", "?")
"""Allocated, reserved, used and total memory in verl's log lines, where the device does not tell."""


def survive_memory_queries() -> None:
    """Let verl's memory log lines say so when the device's memory cannot be asked; a second call changes nothing."""
    upstream.apply("memory-query")


@upstream.replaces("memory-query", "verl.utils.profiler.performance:_get_current_mem_info")
def current_memory(own: Callable[..., tuple[str, ...]], *args: Any, **kwargs: Any) -> tuple[str, ...]:
    """verl's ``_get_current_mem_info``, or :data:`UNKNOWN` where the device's memory cannot be asked."""
    try:
        return own(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - a vendor's module fails with an exception of its own
        _say_once("memory-query", f"The device's memory cannot be asked ({type(error).__name__}: {error})")
        return UNKNOWN


ORDER_ROW, MEGATRON_ORDER_ROW = "offload-order", "megatron-offload-order"
"""Ledger rows of FSDP's and Megatron's offload."""


@upstream.replaces(ORDER_ROW, "verl.workers.engine.fsdp.transformer_impl:offload_fsdp_model_to_cpu")
def offload_model(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """verl's function of this name, whose copies are done when it returns."""
    return _waited(own, *args, **kwargs)


@upstream.replaces(ORDER_ROW, "verl.workers.engine.fsdp.transformer_impl:offload_fsdp_optimizer")
def offload_optimizer(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """As :func:`offload_model`."""
    return _waited(own, *args, **kwargs)


@upstream.replaces(ORDER_ROW, "verl.workers.engine.fsdp.transformer_impl:fsdp2_load_full_state_dict")
def load_full_state_dict(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """As :func:`offload_model`: a model that stays on the host is copied there after it is loaded."""
    return _waited(own, *args, **kwargs)


@upstream.replaces(MEGATRON_ORDER_ROW, "verl.workers.engine.megatron.transformer_impl:offload_megatron_model_to_cpu")
def offload_megatron_model(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """As :func:`offload_model`."""
    return _waited(own, *args, **kwargs)


@upstream.replaces(MEGATRON_ORDER_ROW, "verl.workers.engine.megatron.transformer_impl:offload_megatron_optimizer")
def offload_megatron_optimizer(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """As :func:`offload_model`."""
    return _waited(own, *args, **kwargs)


def _waited(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    from verl.plugin.platform import get_platform

    result = own(*args, **kwargs)
    get_platform().synchronize()
    return result


def pageable_where_pinned_fails() -> None:
    """Let verl offload to pageable host memory where pinned memory is refused or its copies come late.

    A second call changes nothing.
    """
    import torch
    from verl.plugin.platform import get_platform

    try:
        torch.empty(1).pin_memory()
        torch.empty(1, pin_memory=True)
        wrong = "" if _keeps_order(get_platform().device_name) else "Copies to pinned host memory come late"
    except Exception as error:  # noqa: BLE001 - the vendor's allocator refuses with an exception of its own
        wrong = f"Host memory cannot be pinned ({type(error).__name__}: {error})"
    if wrong:
        _say_once("pinned-memory", f"{wrong}: offloading uses pageable memory, waits for each copy and is slower")
        upstream.apply("pinned-memory")


def _keeps_order(device: str) -> bool:
    """Whether values come back whole from pinned memory, on one stream and without a wait."""
    import torch

    values = torch.arange(1 << 16, dtype=torch.int32, device=device)
    host = torch.full(values.shape, -1, dtype=torch.int32, pin_memory=True)
    host.copy_(values, non_blocking=True)
    back = host.to(device, non_blocking=True)
    return bool(torch.equal(back.cpu(), values.cpu()))


@upstream.replaces("pinned-memory", "verl.workers.engine.fsdp.transformer_impl:CPUOffloadPolicy")
def pageable_policy(own: Callable[..., Any], **_: Any) -> Any:
    """torch's policy for FSDP2 with pageable memory."""
    return own(pin_memory=False)


@upstream.replaces("pinned-memory", "verl.utils.activation_offload:SynchronizedGroupOffloadHandler.offload")
def offload_pageable(own: Callable[..., Any], tensor: Any, pin_memory: bool = False) -> Any:
    """verl's ``offload`` with pageable memory, whatever was asked for, and its copy done."""
    return _waited(own, tensor, pin_memory=False)


def offload_views_apart() -> None:
    """Let verl offload each view of an activation by itself; a second call changes nothing.

    verl takes two saved tensors at one address for the same one. In sdpa's backward they are often two views (the keys
    before and after they were transposed or repeated), of which the second then has the first one's values.
    """
    upstream.apply("activation-offload-key")


@upstream.replaces("activation-offload-key", "verl.utils.activation_offload:_get_unique_tensor_key")
def view_key(own: Callable[[Any], tuple[Any, ...]], tensor: Any) -> tuple[Any, ...]:
    """verl's key of a saved tensor, with shape and stride: equal for the same view of the same memory only."""
    return (*own(tensor), tensor.shape, tensor.stride())


@functools.cache
def _say_once(_topic: str, text: str) -> None:
    logger.warning(text)
