# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Shared core of the verl-hw accelerator plugins for verl."""

from typing import TYPE_CHECKING, Any

from verl_hw_core.facts.hardware import HardwareSpec, SmiTool, Traces

if TYPE_CHECKING:
    from verl_hw_core.registration import register

__all__ = ["HardwareSpec", "SmiTool", "Traces", "register"]


def __getattr__(name: str) -> Any:
    """Load ``register`` on first use: reading a spec, as the command line does, needs none of its imports."""
    if name == "register":
        from verl_hw_core.registration import register

        return register
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
