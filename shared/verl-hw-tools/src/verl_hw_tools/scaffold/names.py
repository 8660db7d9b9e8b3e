# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The names of a new vendor: what they must look like, and whether someone has them already."""

import json
import keyword
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import entry_points
from importlib.util import find_spec

from verl_hw_core.platform.table import known_wheels
from verl_hw_tools.errors import VendorNameError
from verl_hw_tools.installed import PLUGIN_GROUP, installed_wheels

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
# As torch reads it (c10/core/Device.cpp): letters and underscores up to the colon.
_DEVICE = re.compile(r"[a-z]+(_[a-z]+)*")
_LONGEST = 24
_LONGEST_DISPLAY = 40
_DISPLAY = re.compile(rf"[A-Za-z0-9][A-Za-z0-9 .+()-]{{0,{_LONGEST_DISPLAY - 1}}}")
_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class VendorNames:
    """Names that everything in a vendor's package is derived from.

    Attributes:
        vendor: Platform key, as ``"acme"``.
        device: torch device type, as ``"apu"``.
        ccl: torch.distributed backend of the collective library, as ``"accl"``.
        display: Name for people, as ``"Acme APU"``.

    Raises:
        VendorNameError: A name does not have the form that verl, torch and Python ask for.
    """

    vendor: str
    device: str
    ccl: str
    display: str

    def __post_init__(self) -> None:
        for what, name in (("the vendor's name", self.vendor), ("--device", self.device), ("--ccl", self.ccl)):
            _check_form(what, name)
        if not _DEVICE.fullmatch(self.device):
            raise VendorNameError(
                f"--device must be without digits, which torch.device() refuses, found {self.device!r}"
            )
        if not _DISPLAY.fullmatch(self.display):
            raise VendorNameError(
                f"--display-name must be 1 to {_LONGEST_DISPLAY} letters, digits, blanks and . + - ( ), "
                f"found {self.display!r}"
            )

    @property
    def distribution(self) -> str:
        """Name of the distribution."""
        return f"verl-hw-{self.vendor.replace('_', '-')}"

    @property
    def module(self) -> str:
        """Import package."""
        return f"verl_hw_{self.vendor}"

    @property
    def class_prefix(self) -> str:
        """Start of the names of its classes."""
        return "".join(part.capitalize() for part in self.vendor.split("_"))


def default_display(vendor: str, device: str) -> str:
    """Return the name for people where none was given: the vendor's and the device's, where that is short enough."""
    maker = vendor.replace("_", " ").title()
    name = f"{maker} {device.upper().replace('_', ' ')}"
    return name if len(name) <= _LONGEST_DISPLAY else maker


def check_free(names: VendorNames) -> None:
    """Check that nobody has these names yet, as far as this machine knows.

    Raises:
        VendorNameError: Someone has; the message says who.
    """
    reserved = json.loads(resources.files(__package__).joinpath("reserved_names.json").read_text(encoding="utf-8"))
    owners = {**dict.fromkeys(reserved["platforms"], "verl or verl-hw itself"), **_owners_of_platforms()}
    _refuse("the vendor's name", names.vendor, owners)
    _refuse("--device", names.device, {**owners, **dict.fromkeys(reserved["devices"], "torch or verl")})
    _refuse("--ccl", names.ccl, {**_owners_of_backends(), **dict.fromkeys(reserved["backends"], "torch")})
    _check_torch_attribute(names.device)


def _check_form(what: str, name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or keyword.iskeyword(name):
        raise VendorNameError(
            f"{what} must be at most {_LONGEST} lower-case letters, digits and single underscores, begin with a letter "
            f"and be no word of Python's (it becomes part of module names), found {name!r}"
        )


def _refuse(what: str, name: str, owners: dict[str, str]) -> None:
    if name in owners:
        raise VendorNameError(f"{what} {name!r} is taken by {owners[name]}: choose another name")


def _owners_of_platforms() -> dict[str, str]:
    """Names of platforms and vendors' devices, with who has them."""
    owners = known_wheels()
    for point in entry_points(group=PLUGIN_GROUP):
        owners.setdefault(point.name, point.dist.name if point.dist else "an installed plugin of verl")
    for wheel in installed_wheels():
        for name in (*wheel.spec.names, wheel.spec.device_name) if wheel.spec else ():
            owners.setdefault(name, wheel.distribution)
    return owners


def _owners_of_backends() -> dict[str, str]:
    return {wheel.spec.ccl_backend: wheel.distribution for wheel in installed_wheels() if wheel.spec is not None}


def _check_torch_attribute(device: str) -> None:
    """``torch.<device>`` becomes the device's module, so torch must not have something of that name."""
    if find_spec("torch") is None:
        return
    code = f"import torch; raise SystemExit(3 if hasattr(torch, {device!r}) else 0)"
    try:
        # A child: this process stays without torch, and a broken torch is no reason not to write files.
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return
    if done.returncode == 3:
        raise VendorNameError(f"--device {device!r} is taken by torch, which has torch.{device}: choose another name")
