# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Device and host memory in training: no query stops a run, pageable where pinned is refused, offloaded views kept."""

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


def pageable_where_pinned_fails() -> None:
    """Let verl offload to pageable host memory where pinned memory is refused; a second call changes nothing."""
    import torch

    try:
        torch.empty(1).pin_memory()
        torch.empty(1, pin_memory=True)
    except Exception as error:  # noqa: BLE001 - the vendor's allocator refuses with an exception of its own
        _say_once(
            "pinned-memory",
            f"Host memory cannot be pinned ({type(error).__name__}: {error}): offloading uses pageable memory and is "
            "slower",
        )
        upstream.apply("pinned-memory")


@upstream.replaces("pinned-memory", "verl.workers.engine.fsdp.transformer_impl:CPUOffloadPolicy")
def pageable_policy(own: Callable[..., Any], **_: Any) -> Any:
    """torch's policy for FSDP2 with pageable memory."""
    return own(pin_memory=False)


@upstream.replaces("pinned-memory", "verl.utils.activation_offload:SynchronizedGroupOffloadHandler.offload")
def offload_pageable(own: Callable[..., Any], tensor: Any, pin_memory: bool = False) -> Any:
    """verl's ``offload`` with pageable memory, whatever was asked for."""
    return own(tensor, pin_memory=False)


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
