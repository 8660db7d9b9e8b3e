# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The device as verl sees it: platform, device module, visible devices, IPC.

Importing this package imports no verl: tools read masks and the device contract without it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verl_hw_core.platform.accelerator import AcceleratorPlatform

__all__ = ["AcceleratorPlatform", "our_platform"]


def our_platform() -> "AcceleratorPlatform | None":
    """Return the platform that verl has chosen if it is one of verl-hw's, else None."""
    from verl.plugin.platform import get_platform

    from verl_hw_core.platform.accelerator import AcceleratorPlatform

    platform = get_platform()
    return platform if isinstance(platform, AcceleratorPlatform) else None


def __getattr__(name: str) -> Any:
    """Load the platform class, and with it verl's base class, on first use."""
    if name == "AcceleratorPlatform":
        from verl_hw_core.platform.accelerator import AcceleratorPlatform

        return AcceleratorPlatform
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
