# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The device as verl sees it: platform, device module, visible devices, IPC.

Importing this package imports no verl: tools read masks and the device contract without it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verl_hw_core.platform.accelerator import AcceleratorPlatform

__all__ = ["AcceleratorPlatform"]


def __getattr__(name: str) -> Any:
    """Load the platform class, and with it verl's base class, on first use."""
    if name == "AcceleratorPlatform":
        from verl_hw_core.platform.accelerator import AcceleratorPlatform

        return AcceleratorPlatform
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
