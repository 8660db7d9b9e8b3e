# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""SYCL's device selector (``ONEAPI_DEVICE_SELECTOR``), which filters the devices that a visibility mask leaves.

Understood are selectors of GPUs behind Level Zero, by number or all: ``level_zero:0,2``, ``level_zero:gpu``, ``*:gpu``,
``*:*``, several terms joined with ``;``. Terms of another backend select none of these devices. Source: the DPC++
document on environment variables. Numbers count the devices that Level Zero shows.
"""

import re

from verl_hw_core.errors import VisibleDevicesError

_BACKEND = "level_zero"
_EVERYTHING = ("*", "gpu")
_NUMBER = re.compile(r"[0-9]{1,9}")


def selected_ordinals(variable: str, value: str) -> tuple[int, ...] | None:
    """Return the numbers that a selector lets through, ascending; None when it lets all devices through.

    Raises:
        VisibleDevicesError: The selector has a form that is not understood here.
    """
    numbers: set[int] = set()
    for term in value.split(";"):
        backend, colon, devices = term.strip().lower().partition(":")
        wanted = [device.strip() for device in devices.split(",")]
        if not colon or backend.startswith("!"):
            raise _not_understood(variable, value, term)
        if backend not in (_BACKEND, "*"):
            continue
        if any(device in _EVERYTHING for device in wanted):
            return None
        if backend == "*" or not all(_NUMBER.fullmatch(device) for device in wanted):
            raise _not_understood(variable, value, term)
        numbers.update(int(device) for device in wanted)
    return tuple(sorted(numbers))


def _not_understood(variable: str, value: str, term: str) -> VisibleDevicesError:
    return VisibleDevicesError(
        f"{variable}={value!r}: cannot tell which devices {term.strip()!r} selects; accepted are '{_BACKEND}:0,1', "
        f"'{_BACKEND}:gpu' and '*:gpu'. Unset it and choose devices with the visibility mask alone"
    )
