# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``AcceleratorPlatform``: verl's platform interface, implemented once over ``torch.<device>`` and a spec.

Fallbacks when the vendor's module lacks a name or raises (one log line each, see
:mod:`verl_hw_core.platform.vendor_module`):

========================  =======================================================================================
is_available              False
device_count              0
current_device            0
get_device_capability     (None, None)
manual_seed(_all)         not seeded, WARNING
set_allocator_settings    unchanged, DEBUG
empty_cache, profiler_*   nothing, DEBUG
nvtx_range                no marker, DEBUG
is_ipc_supported          False
set_device, synchronize   a missing name: nothing for device 0, else an error; a call that raises: an error. The
                          wrong device or an unfinished kernel would give wrong numbers without a word.
========================  =======================================================================================

Hooks that a later verl adds to ``PlatformBase`` reach every vendor by inheritance. Five that verl's main has and no
release yet (platform_base.py at its commit 0d9af30b) are here already: ``attention_utils_module``,
``profiler_markers``, ``dist_profiler_cls``, ``ray_device_index``, ``supports_colocated_worker_groups``. verl 0.9.1
calls none of them.
"""

import importlib
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar

from verl.plugin.platform.platform_base import PlatformBase

from verl_hw_core import detection, load_report
from verl_hw_core.detection.lookup import look_up
from verl_hw_core.errors import CollectiveBackendError, VendorRuntimeError
from verl_hw_core.facts import vendors
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform import profiling, ray_resources, vendor_module, visible_devices
from verl_hw_core.platform.flags import env_flag

logger = logging.getLogger("verl_hw_core")


class AcceleratorPlatform(PlatformBase):
    """A verl platform described by a :class:`~verl_hw_core.facts.hardware.HardwareSpec`.

    Subclasses set :attr:`spec` and override only what their chip does differently. Constructing one has no side
    effect: verl builds every registered class while it looks for the right one.
    """

    spec: ClassVar[HardwareSpec]

    @property
    def device_name(self) -> str:
        """torch device type."""
        return self.spec.device_name

    @property
    def vendor_name(self) -> str:
        """Vendor part of verl's engine lookup."""
        return self.spec.vendor_name

    @property
    def device_module(self) -> ModuleType:
        """``torch.<device>``.

        Raises:
            VendorRuntimeError: The vendor's torch stack is missing or broken.
        """
        return vendor_module.device_module(self.spec)

    def is_available(self) -> bool:
        """Whether this process sees a usable device."""
        available: bool = vendor_module.call(self.spec, "is_available", fallback=False, convert=bool)
        return available

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        """Whether this machine, or only this process, has the accelerator.

        Args:
            use_smi_check: True asks the machine: evidence that needs no visible device, so that a driver, a CPU-only
                Ray actor and a device worker answer alike. False asks the process, as :meth:`is_available`.
        """
        if not use_smi_check:
            return self.is_available()
        registered = vendors.specs()
        if self.spec not in registered:  # used without the vendor wheel's registration, as tests do
            registered = (*registered, self.spec)
        try:
            survey = detection.survey(registered)
        except Exception as error:  # noqa: BLE001 - verl would log it at DEBUG and take the machine for NVIDIA's
            load_report.report("verl-hw-core", "detecting the accelerator", load_report.describe(error), "", error)
            return False
        _say_what_is_unclear(survey)
        return survey.chosen == self.spec.key

    def current_device(self) -> int:
        """Ordinal of the current device."""
        ordinal: int = vendor_module.call(self.spec, "current_device", fallback=0, convert=int)
        return ordinal

    def device_count(self) -> int:
        """Number of devices that this process sees."""
        count: int = vendor_module.call(self.spec, "device_count", fallback=0, convert=int)
        return count

    def set_device(self, device_index: int) -> None:
        """Make ``device_index`` the current device.

        Raises:
            VendorRuntimeError: The device cannot be selected.
        """
        self._strict("set_device", device_index, harmless=device_index == 0)

    def synchronize(self, device_index: int | None = None) -> None:
        """Wait for all work on the device.

        Raises:
            VendorRuntimeError: Work on the device failed.
        """
        self._strict("synchronize", device_index, harmless=True)

    def _strict(self, name: str, argument: int | None, *, harmless: bool) -> None:
        """Call a name whose failure must not be passed over; ``harmless`` says whether its absence may be."""
        module = self.device_module
        function = getattr(module, name, None)
        if function is None and harmless:
            text = f"torch.{self.device_name} has no {name}: going on without it"
            vendor_module.say_once(self.spec, text, logging.WARNING, topic=name)
            return
        if function is None:
            raise VendorRuntimeError(f"torch.{self.device_name} has no {name}: cannot {name}({argument})")
        try:
            function(argument)
        except Exception as error:
            # The type is the vendor's own; verl and users need one that says device, count and mask.
            raise VendorRuntimeError(
                f"torch.{self.device_name}.{name}({argument}) failed with {type(error).__name__}: {error}. This "
                f"process sees {self.device_count()} devices; "
                f"{self.visible_devices_envvar()}={os.environ.get(self.visible_devices_envvar())!r}"
            ) from error

    def manual_seed(self, seed: int) -> None:
        """Seed the current device's generator."""
        vendor_module.call(self.spec, "manual_seed", seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seed the generators of all visible devices."""
        vendor_module.call(self.spec, "manual_seed_all", seed)

    def set_allocator_settings(self, settings: str) -> None:
        """Pass ``settings`` (``"expandable_segments:True"``) to the allocator, where it takes any."""
        if self.spec.allocator_setter is not None:
            vendor_module.call(self.spec, self.spec.allocator_setter, settings, loud=False, of_torch=True)

    def empty_cache(self) -> None:
        """Return unused cached memory to the device."""
        vendor_module.call(self.spec, "empty_cache", loud=False)

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        """Return (major, minor), or (None, None) where the chip has no such notion or no device is visible.

        verl calls this while it is imported and unpacks two values, on machines without a device too.
        """
        if self.spec.capability == "none" or not self.is_available():
            return (None, None)
        found = vendor_module.call(self.spec, "get_device_capability", device_index)
        return found if isinstance(found, tuple) and len(found) == 2 else (None, None)

    def get_device_uuid(self, device_id: int) -> str:
        """Return a name of the card that is the same in every process of this host and on no other card or host.

        Raises:
            VisibleDevicesError: The visible-devices mask is malformed or does not hold ``device_id``.
        """
        return visible_devices.device_uuid(self.spec, int(device_id))

    def communication_backend_name(self) -> str:
        """Return the collective backend: the vendor's own, or FlagCX when ``USE_FLAGCX`` asks for it.

        Raises:
            CollectiveBackendError: ``USE_FLAGCX`` is set and the vendor has no FlagCX, or FlagCX is not installed.
        """
        if not env_flag("USE_FLAGCX"):
            return self.spec.ccl_backend
        if not self.spec.flagcx:
            raise CollectiveBackendError(
                f"USE_FLAGCX={os.environ['USE_FLAGCX']!r} asks for FlagCX, which has no adaptor for "
                f"{self.spec.display_name}: unset USE_FLAGCX to use {self.spec.ccl_backend!r}"
            )
        if look_up("flagcx").spec is None:
            raise CollectiveBackendError(
                f"USE_FLAGCX={os.environ['USE_FLAGCX']!r} asks for FlagCX, but no module 'flagcx' is installed: "
                f"install FlagCX for {self.spec.display_name}, or unset USE_FLAGCX to use {self.spec.ccl_backend!r}"
            )
        return "flagcx"

    def visible_devices_envvar(self) -> str:
        """Name of the variable that selects the visible devices in this process.

        It is one that wins over the vendor's own where such a one is set: verl writes the devices of a rollout server
        to this variable, and the runtime must obey it.
        """
        return visible_devices.variable_in_force(self.spec)

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        """Mark the block with the vendor's own range markers, where it has them."""
        opened = self._marker("range_push", msg)
        try:
            yield
        finally:
            if opened:
                self._marker("range_pop")

    def _marker(self, name: str, *args: str) -> bool:
        if self.spec.range_module is None:
            return False
        failed = object()
        path = f"{self.spec.range_module}.{name}"
        return vendor_module.call(self.spec, path, *args, fallback=failed, loud=False, of_torch=True) is not failed

    def profiler_start(self) -> None:
        """Open the vendor profiler's capture range, where torch gives access to it."""
        self._profiler("start")

    def profiler_stop(self) -> None:
        """Close the vendor profiler's capture range."""
        self._profiler("stop")

    def _profiler(self, name: str) -> None:
        if self.spec.profiler_module is not None:
            vendor_module.call(self.spec, f"{self.spec.profiler_module}.{name}", loud=False, of_torch=True)

    def profiler_markers(self) -> profiling.Markers | None:
        """verl's marker functions over the vendor's ranges, or None where it has none."""
        if self.spec.range_module is None:
            return None
        return profiling.markers(lambda name: self._marker("range_push", name), lambda: self._marker("range_pop"))

    def dist_profiler_cls(self, tool: str) -> type | None:
        """Return what profiles with ``tool``, which is one of the platform's names; None for any other tool.

        A platform with neither ranges nor a capture range has no tool.
        """
        if tool not in self.spec.names or not (self.spec.range_module or self.spec.profiler_module):
            return None
        return profiling.PlatformProfiler

    def attention_utils_module(self) -> str:
        """Name of the module with the helpers that take padding out of batches, the same on every chip."""
        return "verl_hw_core.training.padding"

    def ray_device_index(self, accelerator_ids: Sequence[str]) -> int:
        """Return the ordinal of the first of the devices that Ray gave to this actor.

        verl's own takes an id that the mask does not hold for device 0, on which all workers would then be.

        Raises:
            DeviceAssignmentError: The device is not visible to this process.
            VisibleDevicesError: The same, where the mask says so, or the mask is malformed.
        """
        # By name: what Ray gave is known in a layer above this one.
        worker_device = importlib.import_module("verl_hw_core.ray_support.worker_device")
        ordinal: int = worker_device.device_index(self, accelerator_ids)
        return ordinal

    def supports_colocated_worker_groups(self) -> bool:
        """Whether several worker groups share a device: yes, by processes that take turns, as on NVIDIA."""
        return True

    def ray_resource_name(self) -> str:
        """Resource under which the connected Ray cluster counts the device; the first candidate when there is none."""
        return ray_resources.resource_name(self.spec)

    def ray_noset_envvars(self) -> list[str]:
        """Variables that tell Ray not to touch the visibility of the device."""
        return list(self.spec.ray_noset_envvars)

    def is_ipc_supported(self) -> bool:
        """Whether verl may share weight buffers by device IPC; checked on the running stack, not assumed."""
        return self.spec.ipc and vendor_module.ipc_fits_verl(self.spec)

    def rollout_env_vars(self) -> dict[str, str]:
        """Variables that rollout processes need; what the user has exported wins."""
        return {name: os.environ.get(name, default) for name, default in self.spec.rollout_env}

    def apply_model_patches(self, model_type: str) -> None:
        """Apply the model patches that are declared for this vendor; our engines call it before they build a model.

        Raises:
            ModelPatchError: A patch cannot be applied, or ``VERL_HW_MODEL_PATCHES`` holds an unknown value.
        """
        from verl_hw_core import model_patches

        model_patches.apply(self.spec.key, self.device_name, model_type)

    def cudart(self) -> Any:
        """CUDA runtime API: none on a device that is not CUDA."""
        return None


def _say_what_is_unclear(survey: detection.Survey) -> None:
    """Warn about two vendors that look present, and about one that may be when none surely is."""
    stage, unknown = "detecting the accelerator", detection.Verdict.UNKNOWN
    if survey.conflict:
        load_report.report("verl-hw-core", stage, survey.conflict_message(), "")
    if survey.chosen is not None:
        return
    for finding in survey.findings.values():
        if finding.verdict is unknown:
            doubts = "; ".join(item.why for item in finding.evidence if item.verdict is unknown and item.decides)
            what = f"cannot tell whether {finding.spec_key!r} is present: {doubts}"
            load_report.report("verl-hw-core", stage, what, f"If it is, set VERL_PLATFORM={finding.spec_key}")
