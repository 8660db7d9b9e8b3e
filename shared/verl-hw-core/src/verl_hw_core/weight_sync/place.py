# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Where buckets live, and what a thread must do before it may use that device."""

from dataclasses import dataclass
from typing import Any

import torch
from verl.plugin.platform import get_platform

HOST_BACKEND = "gloo"
"""The backend that moves host memory: buckets are on the host, whatever the platform's device."""


@dataclass(frozen=True)
class Place:
    """A device for buckets.

    Attributes:
        device: Where buckets are.
        platform: verl's platform, None where there is no accelerator to wait for.
        ordinal: Its current device when the place was made.
    """

    device: torch.device
    platform: Any = None
    ordinal: int = 0

    @classmethod
    def here(cls, backend: str) -> "Place":
        """Return the place of the calling thread's current device, or of the host for gloo."""
        platform = get_platform()
        if backend != HOST_BACKEND:
            ordinal = platform.current_device()
            return cls(torch.device(platform.device_name, ordinal), platform, ordinal)
        if platform.is_available():
            return cls(torch.device("cpu"), platform, platform.current_device())
        return cls(torch.device("cpu"))

    def enter_thread(self) -> None:
        """Make the device current in this thread: a new thread starts on device 0, or on none."""
        if self.platform is not None:
            self.platform.set_device(self.ordinal)

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.platform is not None:
            self.platform.synchronize()

    def bucket(self, size: int) -> torch.Tensor:
        """Return a new bucket: uint8 of shape ``[size]``, not initialised."""
        return torch.empty(size, dtype=torch.uint8, device=self.device)

    def release(self) -> None:
        """Give the memory of dropped buckets back to the device."""
        if self.platform is not None:
            self.platform.empty_cache()
