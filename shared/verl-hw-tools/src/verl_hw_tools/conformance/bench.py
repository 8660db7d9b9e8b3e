# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a check works with: one device, in one of a number of processes."""

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from verl_hw_core.facts.hardware import HardwareSpec

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The surroundings of a check.

    Attributes:
        spec: The vendor's facts.
        module: ``torch.<device>``.
        device: This process's device, with its ordinal.
        rank: This process's rank.
        world_size: Number of processes. The default process group is open when there are several.
        device_count: Devices that this process sees.
        folder: A folder that all ranks of the launch share; it is removed afterwards.
        deadline: Seconds that a check may take.
    """

    spec: HardwareSpec
    module: ModuleType
    device: "torch.device"
    rank: int
    world_size: int
    device_count: int
    folder: Path
    deadline: float

    @property
    def type(self) -> str:
        """torch device type, as ``"xpu"``."""
        return self.spec.device_name

    def generator(self, seed: int = 0) -> "torch.Generator":
        """Return a generator of the CPU, so that inputs are the same on every chip."""
        import torch

        return torch.Generator().manual_seed(seed)

    def at(self, ordinal: int) -> "torch.device":
        """Return the device with this ordinal."""
        import torch

        return torch.device(self.type, ordinal)
