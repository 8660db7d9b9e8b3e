# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``platform``: what verl's own platform interface answers on this machine, and the engines behind it."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.numerics import require_equal
from verl_hw_tools.conformance.registry import Check, add, check
from verl_hw_tools.conformance.verdicts import CheckFailed, require


def _platform() -> Any:
    # Imported when the first check needs it: verl takes seconds, and its failure is that check's result.
    from verl.plugin.platform import get_platform

    return get_platform()


@check("platform.chosen", blocks="everything: verl would use another device")
def chosen(bench: Bench) -> None:
    """verl chooses this vendor's platform."""
    found = _platform()
    names = (found.vendor_name, found.device_name)
    require(names == (bench.spec.vendor_name, bench.type), f"{names}", f"{(bench.spec.vendor_name, bench.type)}")


@check("platform.available", blocks="everything: verl takes the device for absent")
def available(bench: Bench) -> None:
    """The platform is available, asked as a driver and as a worker."""
    found = _platform()
    require(found.is_available() is True, "is_available() is false", "true")
    for machine in (False, True):
        answer = found.is_platform_available(use_smi_check=machine)
        require(answer is True, f"is_platform_available({machine}) is {answer}", "True")


@check("platform.count", blocks="placement of workers")
def count(bench: Bench) -> None:
    """The platform counts as many devices as torch."""
    found = _platform().device_count()
    require(found == bench.device_count, f"{found} devices", f"{bench.device_count}")


@check("platform.selects", blocks="every training with more than one device")
def selects(bench: Bench) -> None:
    """The platform's set_device selects."""
    found = _platform()
    for ordinal in reversed(range(bench.device_count)):
        found.set_device(ordinal)
        made = torch.ones(1, device=bench.type).device.index
        answers = (found.current_device(), made)
        require(answers == (ordinal, ordinal), f"current_device() and a tensor's device are {answers}", f"{ordinal}")


@check("platform.refuses_ordinal", blocks="a clear error for a wrong visibility mask")
def refuses_ordinal(bench: Bench) -> None:
    """An ordinal that is not there is refused with verl-hw's own error."""
    from verl_hw_core.errors import VendorRuntimeError

    found = _platform()
    before = found.current_device()
    try:
        found.set_device(bench.device_count)
    except VendorRuntimeError:
        found.set_device(before)
        return
    raise CheckFailed(f"set_device({bench.device_count}) was accepted", "VendorRuntimeError")


@check("platform.seeds", blocks="reproducible runs")
def seeds(bench: Bench) -> None:
    """The platform's seeds reach the device."""
    found = _platform()
    for seed in (found.manual_seed, found.manual_seed_all):
        draws = []
        for _ in range(2):
            seed(3)
            draws.append(torch.randn(16, device=bench.type))
        require_equal(draws[1], draws[0], f"the numbers after {seed.__name__}")


@check("platform.collective_library", blocks="every training with more than one device")
def collective_library(bench: Bench) -> None:
    """torch knows the collective library that the platform names."""
    name = _platform().communication_backend_name()
    require(dist.is_backend_available(name), f"torch does not know {name!r}", "a registered backend")


@check("platform.capability", blocks="import of verl's trainers")
def capability(bench: Bench) -> None:
    """get_device_capability gives two values."""
    found = _platform().get_device_capability()
    good = isinstance(found, tuple) and len(found) == 2 and all(part is None or isinstance(part, int) for part in found)
    require(good, f"{found!r}", "(major, minor) or (None, None)")


@check("platform.uuids", blocks="weight transfer between trainer and rollout on one card")
def uuids(bench: Bench) -> None:
    """Every device has a uuid of its own."""
    found = [_platform().get_device_uuid(ordinal) for ordinal in range(bench.device_count)]
    require(len(set(found)) == len(found), f"{found}", "different ones")


@check("platform.device_of_verl", blocks="everything")
def device_of_verl(bench: Bench) -> None:
    """verl's device helpers answer with this device."""
    from verl.utils import device

    require(device.get_device_name() == bench.type, device.get_device_name(), bench.type)
    module = device.get_torch_device()
    require(module is bench.module, f"{module}", f"torch.{bench.type}")


@check("platform.engines", blocks="training: verl has no engine for the device")
def engines(bench: Bench) -> None:
    """verl has an engine of this vendor for each strategy and kind of model."""
    from verl.workers.engine.base import EngineRegistry

    key = (bench.type, bench.spec.vendor_name)
    missing = [
        f"{model}/{backend}"
        for model in ("language_model", "value_model")
        for backend in ("fsdp", "fsdp2")
        if key not in EngineRegistry._engines.get(model, {}).get(backend, {})
    ]
    require(not missing, f"no engine for {', '.join(missing)}", f"engines for {key}")


def _harmless(name: str, *arguments: Any) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        found = getattr(_platform(), name)(*arguments)
        if hasattr(found, "__enter__"):
            with found:
                torch.ones(2, device=bench.type).sum()
        bench.module.synchronize()

    return run


_CALLS: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("synchronize", (), "timings"),
    ("empty_cache", (), "memory between rollout and training"),
    ("set_allocator_settings", ("expandable_segments:True",), "memory settings around the rollout"),
    ("nvtx_range", ("step",), "markers of the profiler"),
    ("profiler_start", (), "the vendor's profiler"),
    ("profiler_stop", (), "the vendor's profiler"),
    ("is_ipc_supported", (), "weight transfer"),
    ("rollout_env_vars", (), "the rollout"),
    ("ray_noset_envvars", (), "workers under Ray"),
    ("visible_devices_envvar", (), "workers under Ray"),
)
for _name, _arguments, _blocks in _CALLS:
    add(
        Check(
            id=f"platform.{_name}",
            title=f"the platform's {_name} does not raise, and the device goes on working",
            blocks=_blocks,
            run=_harmless(_name, *_arguments),
        )
    )
