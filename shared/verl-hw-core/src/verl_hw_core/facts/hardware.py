# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""One vendor's facts as frozen, validated data. Imports nothing but the standard library."""

import re
from dataclasses import dataclass, field
from typing import Literal

from verl_hw_core.errors import InvalidSpecError

MaskOrder = Literal["as_listed", "ascending"]
CapabilityRule = Literal["module", "none"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_ENVVAR = re.compile(r"[A-Z][A-Z0-9_]*")
_RESOURCE = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_HYDRA_KEY = re.compile(r"\+{0,2}[a-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
_PCI_VENDOR = re.compile(r"0x[0-9a-f]{4}")


@dataclass(frozen=True, kw_only=True)
class SmiTool:
    """A vendor's management tool.

    Attributes:
        command: Name of the executable, looked up on ``PATH`` first.
        args: Arguments of a cheap call that exits 0 when the driver answers.
        paths: Further directories to look in, in order.
        identifies_vendor: False when another vendor ships a tool of the same name; it is then a hint only.
    """

    command: str
    args: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    identifies_vendor: bool = True


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What a vendor's stack leaves on a machine. None of it needs a visible device or a started runtime.

    Attributes:
        torch_version_tag: Part of the local version of the vendor's torch build, as ``"+acme"``.
        torch_version_attribute: Name in ``torch.version`` that is set by the vendor's build, as ``"xpu"``.
        packages: Import names that only this vendor's stack provides; looked up, never imported.
        device_nodes: Glob patterns of device nodes that only this vendor's driver creates.
        pci_vendor: PCI vendor id of the cards, as ``"0x1e36"``.
        pci_identifies_vendor: False when this vendor's other hardware (an integrated GPU) has the same id.
        smi: Management tools, tried in order.
    """

    torch_version_tag: str | None = None
    torch_version_attribute: str | None = None
    packages: tuple[str, ...] = ()
    device_nodes: tuple[str, ...] = ()
    pci_vendor: str | None = None
    pci_identifies_vendor: bool = True
    smi: tuple[SmiTool, ...] = ()


@dataclass(frozen=True, kw_only=True)
class HardwareSpec:
    """The facts of one vendor's accelerator that verl and this core need.

    Attributes:
        key: Name under which the platform is registered with verl (the value of ``VERL_PLATFORM``).
        display_name: Name for people, as ``"Acme NPU"``.
        distribution: Distribution that provides this vendor, as ``"verl-hw-acme"``.
        device_name: torch device type.
        aliases: Further values of ``VERL_PLATFORM`` that mean this platform, lower case.
        extension_module: Module that must be imported before ``torch.<device_name>`` works, or None.
        ccl_backend: Name of the vendor's collective library as a torch.distributed backend.
        flagcx: Whether FlagCX has an adaptor for this vendor.
        visible_devices_envvar: Variable that selects the visible devices of a process.
        overriding_visible_envvars: Variables that win over the one above, strongest first.
        filtering_envvars: Variables that filter the devices beside the mask, in words of their own.
        mask_order: Whether ordinals follow the order in the mask or ascending ids whatever the order.
        subdevice_mask: Whether mask entries may name a part of a card (``"0.1"``).
        ray_resources: Resource names under which Ray clusters count the device, the preferred one first.
        ray_noset_envvars: Variables that tell Ray to leave the visibility alone.
        ipc: Whether the vendor's torch can share device memory between processes. Necessary, not
            sufficient: the platform also checks what the running stack offers.
        capability: ``"module"`` where the device module gives a (major, minor) pair, else ``"none"``.
        allocator_setter: Dotted name of the allocator's setter, from ``torch``, or None.
        range_module: Dotted name, from ``torch``, of the module with ``range_push``/``range_pop``, or None.
        profiler_module: Dotted name, from ``torch``, of a module with ``start``/``stop``, or None.
        rollout_env: Defaults for rollout processes, as (name, value); what the user exported wins.
        launch_env: Defaults for training processes, likewise.
        trainer_options: Options of verl's PPO trainer that the stack needs, as (hydra key, value); the baseline
            script passes them on, and what the user says on its command line wins.
        vllm_sleep: Whether vLLM on this chip has a sleep mode, in which it gives memory back between rollouts.
        cuda_migration: Module of the vendor's stack whose import makes ``torch.cuda`` mean this device, or None. Loaded
            for Megatron engines only.
        sdk_version_files: Files in which the vendor's SDK states its version; for bug reports.
        traces: What detection looks for.
        detection_rank: Lower wins when two vendors look present with equally strong evidence.
    """

    key: str
    display_name: str
    distribution: str
    device_name: str
    aliases: tuple[str, ...] = ()
    extension_module: str | None = None
    ccl_backend: str
    flagcx: bool = False
    visible_devices_envvar: str
    overriding_visible_envvars: tuple[str, ...] = ()
    filtering_envvars: tuple[str, ...] = ()
    mask_order: MaskOrder = "as_listed"
    subdevice_mask: bool = False
    ray_resources: tuple[str, ...]
    ray_noset_envvars: tuple[str, ...] = ()
    ipc: bool = False
    capability: CapabilityRule = "module"
    allocator_setter: str | None = None
    range_module: str | None = None
    profiler_module: str | None = None
    rollout_env: tuple[tuple[str, str], ...] = ()
    launch_env: tuple[tuple[str, str], ...] = ()
    trainer_options: tuple[tuple[str, str], ...] = ()
    vllm_sleep: bool = True
    cuda_migration: str | None = None
    sdk_version_files: tuple[str, ...] = ()
    traces: Traces = field(default_factory=Traces)
    detection_rank: int = 100

    def __post_init__(self) -> None:
        _check("key", self.key, _NAME)
        _check("device_name", self.device_name, _NAME)
        _check("ccl_backend", self.ccl_backend, _NAME)
        for alias in self.aliases:
            _check("aliases", alias, _NAME)
        for resource in self.ray_resources or ("",):
            _check("ray_resources", resource, _RESOURCE)
        masks = (self.visible_devices_envvar, *self.overriding_visible_envvars, *self.filtering_envvars)
        envvars = (*masks, *self.ray_noset_envvars)
        for name in (*envvars, *(name for name, _ in (*self.rollout_env, *self.launch_env))):
            _check("environment variable", name, _ENVVAR)
        for name, _ in self.trainer_options:
            _check("trainer_options", name, _HYDRA_KEY)
        if self.traces.pci_vendor is not None:
            _check("traces.pci_vendor", self.traces.pci_vendor, _PCI_VENDOR)
        if self.key in self.aliases:
            raise InvalidSpecError(f"HardwareSpec: aliases of {self.key!r} must not repeat the key itself")

    @property
    def vendor_name(self) -> str:
        """Vendor name as verl uses it in engine lookups; the same as :attr:`key`."""
        return self.key

    @property
    def names(self) -> tuple[str, ...]:
        """Every value of ``VERL_PLATFORM`` that selects this platform, the key first."""
        return (self.key, *self.aliases)


def _check(what: str, value: str, pattern: re.Pattern[str]) -> None:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise InvalidSpecError(f"HardwareSpec: {what} must match {pattern.pattern!r}, got {value!r}")
