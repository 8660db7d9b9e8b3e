# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a device's IPC handle fits what verl's weight transfer does with it.

verl (``workers/rollout/vllm_rollout/bucketed_weight_transfer.py``) sends ``reduce_tensor(buffer)``, overwrites
argument 6 with the receiver's device and calls ``torch.<device>.ipc_collect()``. A wrong yes corrupts weights or
crashes; a wrong no costs a copy through host memory.
"""

import logging
from functools import cache

from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform import vendor_module

_DEVICE_SLOT = 6


@cache
def fits_verl(spec: HardwareSpec) -> bool:
    """Try it: share a small device tensor and look at the handle. False, with one log line, when anything is off."""
    try:
        _check(spec)
    except Exception as error:  # noqa: BLE001 - a vendor's reduce_tensor may raise anything; host memory always works
        text = f"no device IPC, weights go through host memory: {error}"
        vendor_module.say_once(spec, text, logging.INFO, topic="ipc")
        return False
    return True


def _check(spec: HardwareSpec) -> None:
    import torch
    from torch.multiprocessing.reductions import reduce_tensor

    module = vendor_module.device_module(spec)
    vendor_module.resolve(module, "ipc_collect")
    index = module.current_device()
    _, args = reduce_tensor(torch.zeros(1, device=f"{spec.device_name}:{index}"))
    slot = args[_DEVICE_SLOT] if len(args) > _DEVICE_SLOT else None
    if type(slot) is not int or slot != index:  # False and 0.0 equal ordinal 0
        raise TypeError(f"argument {_DEVICE_SLOT} of the handle is not the device ordinal {index}")
