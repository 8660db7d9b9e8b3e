# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's own reductions, whether or not they are replaced at the moment."""

from collections.abc import Callable
from typing import Any

from verl_hw_core import upstream

ROW = "reduce-avg"
"""Ledger row of the replacement."""

NAMES = ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single")
"""Functions of torch.distributed that take a ReduceOp; the last one exists from torch 2.13."""


def original(name: str) -> Callable[..., Any]:
    """Return torch's own function ``name``."""
    import torch.distributed

    own: Callable[..., Any] = upstream.original(ROW, torch.distributed, name)
    return own
