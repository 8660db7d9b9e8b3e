# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of ``torch.<device>``, over the native half. Their names and signatures are torch's."""

# ruff: noqa: D102 - torch documents these functions.

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from verl_hw_sim.profiles import Profile
from verl_hw_sim.records import record


@dataclass(frozen=True)
class DeviceProperties:
    """What ``get_device_properties`` returns."""

    name: str
    uuid: str
    total_memory: int
    major: int
    minor: int
    has_fp64: bool
    multi_processor_count: int = 16
    has_fp16: bool = True
    has_bfloat16_conversions: bool = True


class OrdinalBase:
    """Common ground of the function groups."""

    def __init__(self, native: ModuleType, profile: Profile) -> None:
        self._native = native
        self._profile = profile

    def _ordinal(self, device: Any = None) -> int:
        """Ordinal of a device given as torch's functions take it: None, a number, a string or a torch.device."""
        if device is None:
            return int(self._native.current_device())
        if isinstance(device, int):
            return int(self._native.current_device()) if device < 0 else device
        parsed = torch.device(device)
        if parsed.type != self._profile.device_name:
            raise ValueError(f"expected a {self._profile.device_name} device, found {parsed}")
        return int(self._native.current_device()) if parsed.index is None else parsed.index


class DeviceFunctions(OrdinalBase):
    """Which devices there are, and which one is current."""

    def is_available(self) -> bool:
        return bool(self._native.device_count() > 0)

    def device_count(self) -> int:
        return int(self._native.device_count())

    def current_device(self) -> int:
        return int(self._native.current_device())

    def set_device(self, device: Any) -> None:
        self._native.set_device(self._ordinal(device))

    def exchange_device(self, device: int) -> int:
        return int(self._native.exchange_device(device))

    # Two functions, not one with two names: dynamo keeps a table by function and refuses to see one twice.
    def _exchange_device(self, device: int) -> int:
        return int(self._native.exchange_device(device))

    def _maybe_exchange_device(self, device: int) -> int:
        return int(self._native.exchange_device(device))

    def synchronize(self, device: Any = None) -> None:
        self._native.exchange_device(self._native.exchange_device(self._ordinal(device)))
        self._native.synchronize()

    def init(self) -> None:
        self._native.device_count()

    _lazy_init = init

    def is_initialized(self) -> bool:
        return bool(self._native.started())

    def _is_in_bad_fork(self) -> bool:
        return False

    def can_device_access_peer(self, device: Any, peer: Any) -> bool:
        ordinals = {self._ordinal(device), self._ordinal(peer)}
        for ordinal in ordinals:
            self._native.check_device(ordinal)
        return len(ordinals) == 2

    def get_device_name(self, device: Any = None) -> str:
        return self.get_device_properties(device).name

    def get_device_capability(self, device: Any = None) -> Any:
        self.get_device_properties(device)  # raises for an ordinal that does not exist
        capability = self._profile.capability
        return dict(capability) if isinstance(capability, Mapping) else capability

    def get_device_properties(self, device: Any = None) -> DeviceProperties:
        from verl_hw_sim.limits import current

        ordinal = self._ordinal(device)
        counts = self._native.memory_counts(ordinal)
        capability = self._profile.capability
        major, minor = (0, 0) if isinstance(capability, Mapping) else capability
        return DeviceProperties(
            name=self._profile.device_label,
            uuid=self._profile.uuid(self._native.visible_ids()[ordinal]),
            total_memory=counts["total"],
            major=major,
            minor=minor,
            has_fp64=not current().no_fp64,
        )

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        return True

    def is_current_stream_capturing(self) -> bool:
        return False  # optimizers ask; there is no graph capture here

    def ipc_collect(self) -> None:
        record("ipc_collect")


class MemoryFunctions(OrdinalBase):
    """Memory statistics. Nothing is cached here, so reserved memory is allocated memory."""

    def memory_allocated(self, device: Any = None) -> int:
        return int(self._counts(device)["current"])

    def max_memory_allocated(self, device: Any = None) -> int:
        return int(self._counts(device)["peak"])

    def memory_reserved(self, device: Any = None) -> int:
        return int(self._counts(device)["current"])

    def max_memory_reserved(self, device: Any = None) -> int:
        return int(self._counts(device)["peak"])

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        self._native.reset_peak(self._ordinal(device))

    reset_max_memory_allocated = reset_peak_memory_stats

    def reset_accumulated_memory_stats(self, device: Any = None) -> None:
        self._native.reset_accumulated(self._ordinal(device))

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        counts = self._counts(device)
        return counts["free"], counts["total"]

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        counts = self._counts(device)
        sizes = {
            "current": counts["current"],
            "peak": counts["peak"],
            "allocated": counts["allocated"],
            "freed": counts["allocated"] - counts["current"],
        }
        stats = {
            f"{kind}_bytes.all.{name}": value
            for kind in ("allocated", "reserved", "active", "requested")
            for name, value in sizes.items()
        }
        stats["allocation.all.current"] = counts["allocations"] - counts["frees"]
        stats["allocation.all.allocated"] = counts["allocations"]
        stats["allocation.all.freed"] = counts["frees"]
        stats["num_alloc_retries"] = 0
        stats["num_ooms"] = counts["out_of_memory"]
        return stats

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        ordinal = self._ordinal(device)
        counts = self._native.memory_counts(ordinal)
        text = ", ".join(f"{name} {value}" for name, value in sorted(counts.items()))
        return f"{self._profile.device_name}:{ordinal} (simulated): {text}"

    def memory_snapshot(self, *arguments: Any) -> list[dict[str, Any]]:
        return []

    def empty_cache(self) -> None:
        record("empty_cache")

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        if not 0.0 <= fraction <= 1.0:
            raise ValueError(f"the fraction of memory must be between 0 and 1, found {fraction}")
        self._native.set_memory_fraction(self._ordinal(device), fraction)

    def get_per_process_memory_fraction(self, device: Any = None) -> float:
        return float(self._native.memory_fraction(self._ordinal(device)))

    def _counts(self, device: Any) -> dict[str, int]:
        counts: dict[str, int] = self._native.memory_counts(self._ordinal(device))
        return counts


class RandomFunctions(OrdinalBase):
    """The devices' default generators. Seeding waits for the runtime; it does not start it."""

    def manual_seed(self, seed: int) -> None:
        self._native.seed(_unsigned(seed))

    def manual_seed_all(self, seed: int) -> None:
        self._native.seed_all(_unsigned(seed))

    def seed(self) -> int:
        return int(self._generator().seed())

    def seed_all(self) -> None:
        self._native.seed_all(_unsigned(self._generator().seed()))

    def initial_seed(self) -> int:
        return int(self._generator().initial_seed())

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return self._generator(device).get_state()

    def set_rng_state(self, new_state: torch.Tensor, device: Any = None) -> None:
        self._generator(device).set_state(new_state.cpu())

    def get_rng_state_all(self) -> list[torch.Tensor]:
        return [self.get_rng_state(ordinal) for ordinal in range(self._native.device_count())]

    def set_rng_state_all(self, new_states: Iterable[torch.Tensor]) -> None:
        for ordinal, state in enumerate(new_states):
            self.set_rng_state(state, ordinal)

    def _generator(self, device: Any = None) -> torch.Generator:
        return self._native.default_generator(self._ordinal(device))


def _unsigned(seed: int) -> int:
    # torch takes negative seeds and maps them to 64 bits the same way.
    return int(seed) & 0xFFFF_FFFF_FFFF_FFFF


# Underscored names that torch itself looks for in a device module.
_TORCH_PRIVATE = ("_lazy_init", "_is_in_bad_fork", "_exchange_device", "_maybe_exchange_device")


def public_functions(functions: object) -> dict[str, Any]:
    """The functions of a group, by name."""
    names = [name for name in dir(functions) if not name.startswith("_") or name in _TORCH_PRIVATE]
    return {name: getattr(functions, name) for name in names}
