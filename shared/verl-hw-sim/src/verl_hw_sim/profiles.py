# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated vendors as data. A third party adds one through the entry-point group ``verl_hw_sim.profiles``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from verl_hw_sim.errors import SettingsError
from verl_hw_sim.settings import SIM_ENVVAR, unknown_name_message

ENTRY_POINT_GROUP = "verl_hw_sim.profiles"

Kind = Literal["privateuse1", "xpu", "cuda"]
KINDS: tuple[Kind, ...] = ("privateuse1", "xpu", "cuda")

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class HostTraces:
    """What the vendor's driver leaves in the file system. ``{index}`` stands for each device's number.

    Attributes:
        device_nodes: Paths below the root of the machine, as ``"dev/cambricon_dev{index}"``.
        pci_vendor: PCI vendor id, as ``"0xcabc"``; it shows up under ``sys/class/drm``.
        smi: Path of the management tool, as ``"usr/bin/cnmon"``.
        smi_header: First line that the tool prints.
        smi_line: One line per device.
    """

    device_nodes: tuple[str, ...] = ()
    pci_vendor: str | None = None
    smi: str | None = None
    smi_header: str = ""
    smi_line: str = "{index}"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One simulated vendor.

    Attributes:
        vendor: Key, the first part of ``VERL_HW_SIM``.
        device_name: torch device type. Any name for kind ``privateuse1``, else that of the kind.
        kind: Dispatch key that carries the device.
        ccl_backend: Name of the collective library as a torch.distributed backend.
        mask_variables: Visibility variables; the first one that is set wins.
        ascending_mask: Ordinals follow ascending ids whatever the order in the mask.
        subdevice_mask: Mask entries may be ``"<id>.<part>"``.
        selector_variable: SYCL's device selector, which filters the devices that the mask leaves, or None.
        device_label: Name of a device.
        uuid_prefix: Start of a device's uuid, as ``"MLU-"``.
        capability: What ``get_device_capability`` returns: a (major, minor) pair or a mapping.
        extension_module: Importable module that comes with the vendor's stack, or None.
        extension_version: Its ``__version__``.
        range_module: Name below the device module of the profiler ranges, as ``"cnpx"``.
        allocator_settings: Whether the device module has ``memory._set_allocator_settings``.
        absent: Names which this vendor's device module lacks.
        torch_version_attributes: Names that the vendor's build sets in ``torch.version``.
        torch_local_version: Local part of ``torch.__version__`` of the vendor's build, or None.
        host: Traces in the file system.
    """

    vendor: str
    device_name: str
    kind: Kind = "privateuse1"
    ccl_backend: str
    mask_variables: tuple[str, ...]
    ascending_mask: bool = False
    subdevice_mask: bool = False
    selector_variable: str | None = None
    device_label: str = "Simulated device"
    uuid_prefix: str = "SIM-"
    capability: tuple[int, int] | Mapping[str, Any] = (1, 0)
    extension_module: str | None = None
    extension_version: str = "0.0+sim"
    range_module: str | None = None
    allocator_settings: bool = True
    absent: tuple[str, ...] = ()
    torch_version_attributes: tuple[tuple[str, str], ...] = ()
    torch_local_version: str | None = None
    host: HostTraces = field(default_factory=HostTraces)

    def __post_init__(self) -> None:
        for name in ("vendor", "device_name", "ccl_backend"):
            if not _IDENTIFIER.fullmatch(getattr(self, name)):
                raise SettingsError(
                    f"Profile: {name} must be a lower-case identifier, found {getattr(self, name)!r}. Correct it."
                )
        if self.kind not in KINDS:
            raise SettingsError(unknown_name_message("Profile: kind", self.kind, KINDS))
        if self.kind != "privateuse1" and self.device_name != self.kind:
            raise SettingsError(
                f"Profile: kind {self.kind!r} carries only the device {self.kind!r}, found {self.device_name!r}. "
                "Use kind 'privateuse1' for a device with a name of its own."
            )

    def uuid(self, physical_id: int) -> str:
        """Uuid of a physical device; stays the same whatever the visibility mask."""
        return f"{self.uuid_prefix}{physical_id:08x}-5157-4d00-8000-{physical_id:012x}"


CAMBRICON = Profile(
    vendor="cambricon",
    device_name="mlu",
    ccl_backend="cncl",
    mask_variables=("CN_VISIBLE_DEVICES", "MLU_VISIBLE_DEVICES"),
    device_label="MLU590-M9 (simulated)",
    uuid_prefix="MLU-",
    capability=(5, 0),
    extension_module="torch_mlu",
    extension_version="1.29.1+sim",
    range_module="cnpx",
    host=HostTraces(
        device_nodes=("dev/cambricon_ctl", "dev/cambricon_dev{index}"),
        pci_vendor="0xcabc",
        smi="usr/bin/cnmon",
        smi_header="CNMON v6.2.10 (simulated)   Driver v6.2.10",
        smi_line="Card {index}  MLU590-M9  0000:{index:02x}:00.0  On",
    ),
)

ENFLAME = Profile(
    vendor="enflame",
    device_name="gcu",
    ccl_backend="eccl",
    mask_variables=("TOPS_VISIBLE_DEVICES",),
    device_label="Enflame S60 (simulated)",
    uuid_prefix="GCU-",
    capability=(3, 0),
    extension_module="torch_gcu",
    extension_version="2.10.0+sim",
    range_module="topstx",
    absent=("ipc_collect",),
    host=HostTraces(
        device_nodes=("dev/gcuctl", "dev/gcu{index}"),
        pci_vendor="0x1e36",
        smi="usr/bin/efsmi",
        smi_header="Enflame System Management Interface V1.7 (simulated)",
        smi_line="| {index}  S60  0000:{index:02x}:00.0 |",
    ),
)

INTEL = Profile(
    vendor="intel",
    device_name="xpu",
    kind="xpu",
    ccl_backend="xccl",
    mask_variables=("ZE_AFFINITY_MASK",),
    ascending_mask=True,
    subdevice_mask=True,
    selector_variable="ONEAPI_DEVICE_SELECTOR",
    device_label="Intel(R) Arc(TM) Pro B60 Graphics (simulated)",
    uuid_prefix="8680-",
    capability=MappingProxyType(
        {"architecture": 21479031808, "has_fp16": True, "has_fp64": True, "max_compute_units": 160, "version": "20.1.0"}
    ),
    absent=("ipc_collect", "default_stream", "reset_max_memory_allocated"),
    allocator_settings=False,
    torch_version_attributes=(("xpu", "20260000"),),
    host=HostTraces(
        device_nodes=("dev/dri/renderD{render}",),
        pci_vendor="0x8086",
        smi="usr/bin/xpu-smi",
        smi_header="| Device ID | Device Information |",
        smi_line="| {index} | Device Name: Intel(R) Arc(TM) Pro B60 Graphics  PCI BDF Address: 0000:{index:02x}:00.0 |",
    ),
)

METAX = Profile(
    vendor="metax",
    device_name="cuda",
    kind="cuda",
    ccl_backend="nccl",
    mask_variables=("MACA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    device_label="MetaX C550 (simulated)",
    uuid_prefix="GPU-",
    capability=(8, 0),
    range_module="nvtx",
    torch_version_attributes=(("cuda", "11.6"),),
    torch_local_version="metax3.7.0.7",
    host=HostTraces(
        device_nodes=("dev/mxcd", "dev/dri/renderD{render}"),
        pci_vendor="0x9999",
        smi="opt/mxdriver/bin/mx-smi",
        smi_header="mx-smi  version: 2.2.3 (simulated)",
        smi_line="| {index}  MXC550  0000:{index:02x}:00.0  Available |",
    ),
)

BUILTIN_PROFILES: Mapping[str, Profile] = MappingProxyType(
    {profile.vendor: profile for profile in (CAMBRICON, ENFLAME, INTEL, METAX)}
)


def get_profile(vendor: str) -> Profile:
    """The profile of a vendor, ours or a third party's.

    Args:
        vendor: Key, as ``"cambricon"``.

    Raises:
        SettingsError: No such vendor, or its entry point does not give a :class:`Profile`.
    """
    if vendor in BUILTIN_PROFILES:
        return BUILTIN_PROFILES[vendor]
    # Only now: looking through every installed distribution takes time.
    from importlib.metadata import entry_points

    third_party = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if vendor not in third_party:
        raise SettingsError(
            unknown_name_message(f"the vendor in {SIM_ENVVAR}", vendor, [*BUILTIN_PROFILES, *third_party])
        )
    profile = third_party[vendor].load()
    if not isinstance(profile, Profile) or profile.vendor != vendor:
        raise SettingsError(
            f"entry point {vendor!r} of group {ENTRY_POINT_GROUP} must be a verl_hw_sim.profiles.Profile with "
            f"vendor={vendor!r}; found {profile!r}. Correct the distribution that declares it."
        )
    return profile
