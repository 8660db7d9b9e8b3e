# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which names of ``rollout.checkpoint_engine.backend`` are ours on a vendor's platform."""

from verl.checkpoint_engine.base import CheckpointEngineRegistry
from verl.plugin.platform import get_platform

from verl_hw_core import upstream
from verl_hw_core.platform import AcceleratorPlatform
from verl_hw_core.weight_sync.engine import CollectiveCheckpointEngine


class VendorEngine(CollectiveCheckpointEngine):
    """Over the vendor's own library, under its name."""

    @classmethod
    def backend_name(cls) -> str:
        """The library's name for torch."""
        return str(get_platform().spec.ccl_backend)


class DefaultEngine(CollectiveCheckpointEngine):
    """Over what the platform uses for collectives: ``nccl``, which verl's configurations name for every device."""

    @classmethod
    def backend_name(cls) -> str:
        """The platform's choice, FlagCX included."""
        return str(get_platform().communication_backend_name())


class FlagcxEngine(CollectiveCheckpointEngine):
    """Over FlagCX."""

    @classmethod
    def backend_name(cls) -> str:
        """FlagCX's name for torch."""
        return "flagcx"


class HostEngine(CollectiveCheckpointEngine):
    """Through host memory over gloo, where the vendor's library is missing or at fault."""

    @classmethod
    def backend_name(cls) -> str:
        """gloo's name for torch."""
        return "gloo"


def register(key: str) -> None:
    """Register the engines if vendor ``key`` is the platform of this process; verl's own stay elsewhere."""
    platform = get_platform()
    if not isinstance(platform, AcceleratorPlatform) or platform.spec.key != key:
        return
    if not upstream.check("weight-sync-name", "weight-sync-group"):
        return
    engines: dict[str, type[CollectiveCheckpointEngine]] = {"gloo": HostEngine, "nccl": DefaultEngine}
    if platform.spec.flagcx:
        engines["flagcx"] = FlagcxEngine
    if platform.spec.ccl_backend != "nccl":
        engines[platform.spec.ccl_backend] = VendorEngine
    for name, engine in engines.items():
        CheckpointEngineRegistry.register(name)(engine)
