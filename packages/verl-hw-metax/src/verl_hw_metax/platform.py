# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl platform for MetaX."""

from typing import Any

from verl_hw_core.platform import AcceleratorPlatform
from verl_hw_metax.spec import SPEC


class MetaxPlatform(AcceleratorPlatform):
    """MetaX: torch.cuda of a rebuilt torch."""

    spec = SPEC

    def set_allocator_settings(self, settings: str) -> None:
        """Pass ``settings`` on, except expandable segments.

        MetaX's quick start unsets PYTORCH_CUDA_ALLOC_CONF, so their effect there is suspect [L].
        """
        if not settings.startswith("expandable_segments"):
            super().set_allocator_settings(settings)

    def get_collective_module(self) -> Any:
        """Return cupy's NCCL module where a cupy for MetaX is installed [U], else None."""
        try:
            from cupy.cuda import nccl
        except ImportError:
            return None
        return nccl

    def cudart(self) -> Any:
        """CUDA runtime API of the rebuilt torch."""
        return self.device_module.cudart()
