# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The environment variables of the simulator. Imports nothing but the standard library."""

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from verl_hw_sim.errors import SettingsError

SIM_ENVVAR = "VERL_HW_SIM"
LIMITS_ENVVAR = "VERL_HW_SIM_LIMITS"
CACHE_ENVVAR = "VERL_HW_SIM_CACHE"
PROBE_ROOT_ENVVAR = "VERL_HW_PROBE_ROOT"

DEFAULT_DEVICES = 2
MAX_DEVICES = 16


@dataclass(frozen=True)
class Request:
    """What ``VERL_HW_SIM`` asks for.

    Attributes:
        vendor: Key of a profile, as ``"cambricon"``.
        devices: Physical devices of the simulated machine.
    """

    vendor: str
    devices: int = DEFAULT_DEVICES

    @property
    def text(self) -> str:
        """The value of ``VERL_HW_SIM`` that means this request."""
        return f"{self.vendor}:{self.devices}"


def parse_request(text: str) -> Request:
    """Read ``<vendor>[:<devices>]``. Whether the vendor exists is for :mod:`verl_hw_sim.profiles` to say.

    Args:
        text: Value of ``VERL_HW_SIM``.

    Raises:
        SettingsError: The number of devices is not one of 1 to 16, or the vendor is empty.
    """
    vendor, separator, count = text.strip().partition(":")
    vendor = vendor.strip().lower()
    wanted = f"{SIM_ENVVAR} must be <vendor>[:<devices>], as cambricon:4, with 1 to {MAX_DEVICES} devices"
    if not vendor:
        raise SettingsError(f"{wanted}; found {text!r}, which names no vendor. Set a vendor or unset {SIM_ENVVAR}.")
    if not separator:
        return Request(vendor)
    count = count.strip()
    if not (count.isascii() and count.isdigit()) or not 1 <= int(count) <= MAX_DEVICES:
        raise SettingsError(f"{wanted}; found {text!r}. Use a number from 1 to {MAX_DEVICES}, or leave :{count} out.")
    return Request(vendor, int(count))


def unknown_name_message(what: str, name: str, valid: Iterable[str]) -> str:
    """Text for a name that is not one of ``valid``: lists them and suggests the nearest."""
    names = sorted(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{what} must be one of {', '.join(names)}; found {name!r}.{hint}"


def cache_directory() -> Path:
    """Folder for compiled devices and fake hosts: ``VERL_HW_SIM_CACHE``, else the user's cache folder."""
    configured = os.environ.get(CACHE_ENVVAR)
    if configured:
        return Path(configured).expanduser()
    # Imported here: a process with its own cache folder does not pay for it.
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("verl-hw-sim"))
