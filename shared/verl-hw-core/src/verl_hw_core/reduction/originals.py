# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's own reductions, whether or not they are replaced at the moment."""

from collections.abc import Callable
from typing import Any

from verl_hw_core import upstream

ROW = "reduce-avg"
"""Ledger row of the replacement."""


def places(name: str) -> tuple[str, str]:
    """Return the two names under which torch has a function."""
    return f"torch.distributed:{name}", f"torch.distributed.distributed_c10d:{name}"


def original(name: str) -> Callable[..., Any]:
    """Return torch's own function ``name``."""
    import torch.distributed

    own: Callable[..., Any] = upstream.original(ROW, torch.distributed, name)
    return own
