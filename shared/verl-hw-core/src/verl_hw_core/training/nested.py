# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Batches on the device: jagged tensors can be made there, and are complete when they have come back to the host.

verl takes care of both for npu only, while it is imported.
"""

import logging
from collections.abc import Callable
from typing import Any

from verl_hw_core import upstream

logger = logging.getLogger("verl_hw_core")

CONSTRUCTORS = ("nested_tensor", "as_nested_tensor")
"""Functions of ``torch.nested`` that verl makes jagged tensors with and that torch extensions are known to wrap."""


def unwrap_constructors(device: str) -> None:
    """Undo a vendor's wrapper around torch's constructors where it refuses the device and torch's own does not.

    Args:
        device: torch device type.
    """
    import torch

    if not upstream.check("nested-constructors"):
        return
    for name in CONSTRUCTORS:
        wrapper = getattr(torch.nested, name)
        own = getattr(wrapper, "__wrapped__", None)
        if own is None:
            continue
        refusal = _refusal(wrapper, device)
        if refusal is not None and _refusal(own, device) is None:
            logger.info("torch.nested.%s refuses device %s (%s): torch's own is used", name, device, refusal)
            _unwrap(name, own)


@upstream.applies("nested-constructors")
def _unwrap(name: str, own: Any) -> None:
    import torch

    upstream.replace("nested-constructors", torch.nested, name, own)


def _refusal(constructor: Any, device: str) -> str | None:
    """Why ``constructor`` cannot make a jagged tensor on the device, or None."""
    import torch

    try:
        constructor([torch.zeros(1, device=device), torch.zeros(2, device=device)], layout=torch.jagged)
    except Exception as error:  # noqa: BLE001 - a vendor's wrapper refuses with an exception of its own
        return f"{type(error).__name__}: {error}"
    return None


@upstream.applies("tensordict-synchronization")
def synchronize_host_copies(platform: Any) -> None:
    """Let tensordict wait for the platform's device where it would wait for another one, or for none.

    ``TensorDict.to("cpu")`` copies without blocking, then waits for the first device type that it finds: cuda, mps,
    xpu, then a PrivateUse1 backend. With a CUDA migration shim, or a second accelerator in the machine, that is not
    the one that copies.

    Args:
        platform: verl's platform.
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
