# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""From what Ray gave to an actor to the ordinal of a device in its process. Pure: no Ray, no device.

Three things are composed:

- the mask that the vendor's runtime obeys in this process (:func:`verl_hw_core.platform.visible_devices.read_mask`);
- the *slots* that Ray assigned: units of the node's resource, counted from 0;
- Ray's *ids* of these slots. They are cards where Ray's manager reads the variable that the runtime obeys, and mean
  nothing to the chip where it reads another one (``CUDA_VISIBLE_DEVICES`` on a chip that Ray does not know).
"""

from collections.abc import Sequence

from verl_hw_core.errors import DeviceAssignmentError
from verl_hw_core.platform.visible_devices import Mask
from verl_hw_core.ray_support.holding import Holding


def ordinals(mask: Mask, holding: Holding, device_count: int) -> tuple[int, ...]:
    """Return the ordinals, in this process, of the devices that Ray assigned.

    Args:
        mask: The mask that the runtime obeys.
        holding: What Ray assigned, with slots.
        device_count: Devices that the runtime shows to this process.

    Returns:
        One ordinal for each slot.

    Raises:
        DeviceAssignmentError: A device is not visible to this process.
    """
    if holding.slots is None:
        raise DeviceAssignmentError(f"Ray does not tell which units of {holding.resource!r} this actor holds")
    found = tuple(_ordinal(mask, holding, index) for index in range(len(holding.slots)))
    for ordinal in found:
        if ordinal >= device_count:
            raise DeviceAssignmentError(
                f"Ray gave this worker unit {list(holding.slots)} of {holding.resource!r}, but the process sees "
                f"{device_count} devices ({describe(mask)}). Start Ray with as many {holding.resource} as the node "
                "has visible devices, and set the variable for `ray start`, not for the job"
            )
    if len(set(found)) < len(found):
        raise DeviceAssignmentError(
            f"Units {list(holding.slots)} of {holding.resource!r} would be the same device: {describe(mask)}. Correct "
            "the variable, then restart Ray"
        )
    return found


def cards(mask: Mask, ordinals: Sequence[int]) -> tuple[str, ...]:
    """Return the text that names each device in a mask, whatever the mask of this process.

    Args:
        mask: The mask that the runtime obeys.
        ordinals: Ordinals in this process; each must exist.
    """
    return tuple(str(ordinal) if mask.entries is None else mask.entries[ordinal] for ordinal in ordinals)


def describe(mask: Mask) -> str:
    """Return the mask in words."""
    if mask.value is None:
        return f"{mask.source} is not set"
    beside = "" if mask.filtered_by is None else f" with {mask.filtered_by}"
    return f"{mask.source}{beside} makes {mask.value!r} visible"


def _ordinal(mask: Mask, holding: Holding, index: int) -> int:
    slots = holding.slots or ()
    if mask.filtered_by is not None and mask.filtered_by == holding.ray_variable:
        # Ray's ids count what the mask leaves, and so does the filter that Ray writes.
        return index if len(mask.entries or ()) == len(slots) else slots[index]
    if mask.source != holding.ray_variable or mask.entries is None or len(holding.ids) != len(slots):
        return slots[index]
    if set(holding.ids) == set(mask.entries):
        return mask.entries.index(holding.ids[index])  # Ray has narrowed the mask to this actor's devices
    # The node's mask is in force (NOSET). A part of a card that is only a part of a device here has no entry.
    return mask.entries.index(holding.ids[index]) if holding.ids[index] in mask.entries else slots[index]
