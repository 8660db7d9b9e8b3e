# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""fp16 loss scaling on the accelerator.

verl builds its scaler for CUDA; on any other device torch then switches it off with one warning, and small gradients
are lost (ledger row ``grad-scaler-device``).
"""

from typing import Any

from verl_hw_core.errors import UnsupportedPrecisionError

GROWTH_INTERVAL = 400  # verl's own, workers/engine/fsdp/transformer_impl.py


def require_loss_scaling(display_name: str, device: str) -> None:
    """Check, before any model is built, that the chip can do what loss scaling needs.

    Raises:
        UnsupportedPrecisionError: The chip has no float64, in which torch inverts the scale.
    """
    import torch

    try:
        torch.ones(1, device=device).double().reciprocal().float()
    except Exception as error:  # a chip without float64 refuses with an exception of its own
        raise UnsupportedPrecisionError(
            f"fp16 training needs float64 on the device, in which torch inverts the loss scale, and {display_name} "
            f"({device}) refuses it: {error}. Train in bfloat16 (engine.mixed_precision.param_dtype=bf16)"
        ) from error


def grad_scaler(device: str) -> Any:
    """Return verl's loss scaler for ``device``."""
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    return ShardedGradScaler(device=device, growth_interval=GROWTH_INTERVAL)
