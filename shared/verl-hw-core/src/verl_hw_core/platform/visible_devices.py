# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Visibility masks: parse, validate and compose them; physical id <-> local ordinal <-> device uuid.

The mask of a process is the first variable that is set among the spec's overriding variables and its own. What the
values mean:

- not set: all devices, and a device's ordinal is its physical id;
- empty or blank, or ``-1`` alone (the usual way to write "none"): no device;
- ``2,5``: these devices in the runtime's order, see ``HardwareSpec.mask_order``; blanks around an entry are ignored;
- ``GPU-abc``: a device by its uuid, kept as written (only where the order of the mask is the runtime's order);
- ``0.1``: a part of card 0 (only with ``HardwareSpec.subdevice_mask``). Under the COMPOSITE device hierarchy all listed
  parts of a card form one device, otherwise each is a device.

A variable that filters beside the mask (``HardwareSpec.filtering_envvars``) narrows it further; its numbers count the
devices that the mask leaves.

Anything else is an error, also where a runtime would quietly stop reading or drop the entry: the run would go on with
fewer devices than the user asked for, or with others.
"""

import os
import re
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from verl_hw_core.errors import VisibleDevicesError
from verl_hw_core.facts.hardware import HardwareSpec, MaskOrder
from verl_hw_core.platform.device_selector import selected_ordinals

BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
HIERARCHY_ENVVAR = "ZE_FLAT_DEVICE_HIERARCHY"
"""Level Zero: whether a mask entry like "0.1" is a part of a device (COMPOSITE) or a device of its own."""

Numbering = Literal["auto", "relative", "physical"]

_NUMBER = re.compile(r"[0-9]{1,9}")
_SUBDEVICE = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}")
_UUID = re.compile(r"[A-Za-z]+-[A-Za-z0-9][A-Za-z0-9./_-]*")


@dataclass(frozen=True)
class Mask:
    """The devices that a process may use.

    Attributes:
        source: Variable that says so (the spec's own variable when none is set).
        entries: One entry for each visible device, in the order of the ordinals: the text that exposes exactly this
            device when written to the variable. None when the variable is not set: all devices.
        order: Whether the runtime numbers devices as listed or in ascending order.
        filtered_by: Variable that narrowed the mask further, or None.
    """

    source: str
    entries: tuple[str, ...] | None
    order: MaskOrder = "as_listed"
    filtered_by: str | None = None

    @property
    def value(self) -> str | None:
        """The text to set :attr:`source` to, None to leave it unset."""
        return None if self.entries is None else ",".join(self.entries)


def read_mask(spec: HardwareSpec, environ: Mapping[str, str] = os.environ) -> Mask:
    """Reads the mask that the vendor's runtime obeys in the given environment.

    Raises:
        VisibleDevicesError: The value is malformed or names a device twice, or a filter selects a device that the mask
            does not leave.
    """
    name = variable_in_force(spec, environ)
    entries = _parse(spec, name, environ[name], environ) if name in environ else None
    mask = Mask(name, entries, spec.mask_order)
    for other in spec.filtering_envvars:
        if other in environ:
            mask = _filtered(mask, other, environ[other])
    return mask


def variable_in_force(spec: HardwareSpec, environ: Mapping[str, str] = os.environ) -> str:
    """Returns the variable whose value the runtime obeys: the strongest that is set, or the spec's own."""
    names = (*spec.overriding_visible_envvars, spec.visible_devices_envvar)
    return next((name for name in names if name in environ), spec.visible_devices_envvar)


def physical_id(mask: Mask, ordinal: int) -> str:
    """Returns the mask entry of the device that the process knows under ``ordinal``.

    Raises:
        VisibleDevicesError: The mask has no such ordinal.
    """
    if mask.entries is None and ordinal >= 0:
        return str(ordinal)
    if mask.entries is None or not 0 <= ordinal < len(mask.entries):
        raise VisibleDevicesError(f"Device ordinal {ordinal} does not exist: {_describe(mask)}")
    return mask.entries[ordinal]


def local_ordinal(mask: Mask, physical: str | int) -> int:
    """Returns the ordinal under which the process knows a physical device.

    Raises:
        VisibleDevicesError: The mask does not hold that device.
    """
    wanted = _canonical(str(physical))
    if mask.entries is None and _NUMBER.fullmatch(wanted):
        return int(wanted)
    entry = _entry_of(mask, wanted)
    if mask.entries is None or entry is None:
        raise VisibleDevicesError(f"Device {wanted!r} is not visible: {_describe(mask)}")
    return mask.entries.index(entry)


def select(mask: Mask, ids: Sequence[str | int], numbering: Numbering = "auto") -> Mask:
    """Narrows a node's mask to the devices that Ray gave to a worker.

    Ray's ids are physical where Ray knows the device and the mask, and otherwise count from 0 within the node's mask.
    ``numbering`` says which; ``"auto"`` finds out and refuses to guess where both readings are possible and differ.

    Returns:
        The mask of the worker, with as many devices as ids.

    Raises:
        VisibleDevicesError: An id is not on this node, two ids mean the same device, or the numbering is ambiguous.
    """
    wanted = [_canonical(str(item)) for item in ids]
    physical = _select_physical(mask, wanted) if numbering != "relative" else None
    relative = _select_relative(mask, wanted) if numbering != "physical" else None
    if physical is not None and relative is not None and set(physical) != set(relative):
        raise VisibleDevicesError(
            f"Device ids {wanted} can mean the devices {physical} (physical ids) or {relative} (counted within the"
            f' mask): {_describe(mask)}. Say which with numbering="physical" or numbering="relative"'
        )
    chosen = physical if physical is not None else relative
    if chosen is None:
        raise VisibleDevicesError(f"Device ids {wanted} are not all on this node: {_describe(mask)}")
    if len(set(chosen)) < len(chosen):
        raise VisibleDevicesError(f"Device ids {wanted} name the same device twice: {_describe(mask)}")
    if mask.order == "ascending":
        chosen = sorted(chosen, key=_sort_key)
    return replace(mask, entries=tuple(chosen))


def check_count(mask: Mask, runtime_count: int) -> None:
    """Compares the mask with the number of devices that the started runtime shows.

    Some runtimes drop entries that they do not know without a word, and later errors then name the wrong card.

    Raises:
        VisibleDevicesError: The numbers differ.
    """
    if mask.entries is not None and len(mask.entries) != runtime_count:
        raise VisibleDevicesError(
            f"{mask.source}={mask.value!r} lists {len(mask.entries)} devices but the runtime shows {runtime_count}:"
            " an entry names a device that is not there; correct the variable"
        )


def device_uuid(
    spec: HardwareSpec, ordinal: int, environ: Mapping[str, str] = os.environ, host_id: str | None = None
) -> str:
    """Returns a name for a device that is the same in every process and differs between cards and hosts.

    The name has no blank, slash or colon, so it can be part of a path. A card that one mask names by number and another
    by uuid gets two names: only the driver could tell that they are the same, and it is not asked here. ``host_id``
    names the host; by default it comes from the boot id, which all containers of a host share.

    Raises:
        VisibleDevicesError: The mask is malformed or has no such ordinal.
    """
    card = physical_id(read_mask(spec, environ), ordinal)
    # "+" occurs in no entry, so different entries stay different.
    host = re.sub(r"[^A-Za-z0-9.-]", "_", host_id) if host_id else _host_id()
    return f"{spec.key.upper()}-{host}-{card.replace(',', '+').replace('/', '+')}"


def _parse(spec: HardwareSpec, name: str, value: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    text = value.strip()
    if text in ("", "-1"):
        return ()
    entries = [_canonical(part.strip()) for part in text.split(",")]
    for entry in entries:
        if not _is_accepted(spec, entry):
            raise VisibleDevicesError(f"{name}={value!r}: entry {entry!r} is not valid; {_accepted(spec)}")
    if len({bool(_UUID.fullmatch(entry)) for entry in entries}) > 1:
        raise VisibleDevicesError(f"{name}={value!r} mixes device numbers and uuids; {_accepted(spec)}")
    for entry in entries:
        # A whole card together with a part of it is the same card twice, too.
        if entries.count(entry) > 1 or ("." in entry and _card_of(entry) in entries):
            raise VisibleDevicesError(f"{name}={value!r} names device {_card_of(entry)!r} twice; {_accepted(spec)}")
    if spec.mask_order == "ascending":
        entries.sort(key=_sort_key)
    if spec.subdevice_mask and environ.get(HIERARCHY_ENVVAR, "").strip().upper() == "COMPOSITE":
        entries = _join_parts(entries)
    return tuple(entries)


def _filtered(mask: Mask, variable: str, value: str) -> Mask:
    ordinals = selected_ordinals(variable, value)
    if ordinals is None:
        return mask
    missing = [] if mask.entries is None else [number for number in ordinals if number >= len(mask.entries)]
    if missing:
        raise VisibleDevicesError(
            f"{variable}={value!r} selects device {missing[0]}, counted among those that are left: {_describe(mask)}. "
            f"Unset {variable}"
        )
    return replace(mask, entries=tuple(physical_id(mask, ordinal) for ordinal in ordinals), filtered_by=variable)


def _join_parts(entries: Sequence[str]) -> list[str]:
    parts: dict[str, list[str]] = {}
    for entry in entries:
        parts.setdefault(_card_of(entry), []).append(entry)
    return [",".join(listed) for listed in parts.values()]


def _is_accepted(spec: HardwareSpec, entry: str) -> bool:
    if _NUMBER.fullmatch(entry):
        return True
    if spec.subdevice_mask and _SUBDEVICE.fullmatch(entry):
        return True
    return spec.mask_order == "as_listed" and bool(_UUID.fullmatch(entry))


def _accepted(spec: HardwareSpec) -> str:
    forms = ["device numbers such as '0,2'"]
    if spec.subdevice_mask:
        forms.append("parts of a card such as '0.1'")
    if spec.mask_order == "as_listed":
        forms.append("device uuids")
    return f"accepted: {', '.join(forms)}, each device once; '' or '-1' for no device; unset for all"


def _canonical(entry: str) -> str:
    if _NUMBER.fullmatch(entry) or _SUBDEVICE.fullmatch(entry):
        return ".".join(str(int(part)) for part in entry.split("."))
    return entry


def _card_of(entry: str) -> str:
    return entry.split(".")[0] if _SUBDEVICE.fullmatch(entry) else entry


def _sort_key(entry: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(number) for number in part.split(".")) for part in entry.split(","))


def _entry_of(mask: Mask, wanted: str) -> str | None:
    """The entry that exposes a physical device; a part of a device that was joined from parts means that device."""
    if mask.entries is None:
        by_uuid = mask.order == "as_listed" and _UUID.fullmatch(wanted)
        return wanted if by_uuid or _NUMBER.fullmatch(wanted) else None
    return next((entry for entry in mask.entries if wanted == entry or wanted in entry.split(",")), None)


def _select_physical(mask: Mask, wanted: Sequence[str]) -> list[str] | None:
    found = [_entry_of(mask, item) for item in wanted]
    known = [entry for entry in found if entry is not None]
    return known if len(known) == len(found) else None


def _select_relative(mask: Mask, wanted: Sequence[str]) -> list[str] | None:
    if not all(_NUMBER.fullmatch(item) for item in wanted):
        return None
    if mask.entries is None:
        return list(wanted)
    if not all(int(item) < len(mask.entries) for item in wanted):
        return None
    return [mask.entries[int(item)] for item in wanted]


def _describe(mask: Mask) -> str:
    if mask.entries is None:
        return f"{mask.source} is not set, so all devices are visible and ids count from 0"
    if mask.filtered_by is not None:
        return f"{mask.source} and {mask.filtered_by} leave the devices {mask.value!r}"
    count = len(mask.entries)
    return f"{mask.source}={mask.value!r} makes {count} device{'' if count == 1 else 's'} visible"


def _host_id() -> str:
    try:
        source = Path(BOOT_ID_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        source = f"{socket.gethostname()} {uuid.getnode()}"
    return sha256(source.encode()).hexdigest()[:12]
