# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A folder that looks like the root of a machine with the vendor's driver: device nodes, PCI ids, management tool."""

import hashlib
import json
import os
import shlex
import shutil
import tempfile
from pathlib import Path

from verl_hw_sim.errors import CacheDirectoryError
from verl_hw_sim.profiles import Profile
from verl_hw_sim.settings import CACHE_ENVVAR, cache_directory

# The kernel numbers render nodes from here.
_FIRST_RENDER_NODE = 128


def _files(profile: Profile, devices: int) -> dict[str, str]:
    """Text of every file, by its path below the root."""
    host = profile.host
    files: dict[str, str] = {}
    for index in range(devices):
        render = _FIRST_RENDER_NODE + index
        for node in host.device_nodes:
            files[node.format(index=index, render=render)] = ""
        if host.pci_vendor is not None:
            files[f"sys/class/drm/renderD{render}/device/vendor"] = f"{host.pci_vendor}\n"
            files[f"sys/bus/pci/devices/0000:{index:02x}:00.0/vendor"] = f"{host.pci_vendor}\n"
    if host.smi is not None:
        lines = [host.smi_header, *(host.smi_line.format(index=index) for index in range(devices))]
        body = "".join(f"echo {shlex.quote(line)}\n" for line in lines if line)
        files[host.smi] = f"#!/bin/sh\n{body}exit 0\n"
    return files


def ensure_fake_host(profile: Profile, devices: int) -> Path:
    """Create the folder unless it exists, and return it. Safe when many processes do so at once.

    Args:
        profile: The vendor.
        devices: Physical devices of the machine.

    Raises:
        CacheDirectoryError: The cache folder cannot be written.
    """
    files = _files(profile, devices)
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:12]
    root = cache_directory() / "hosts" / f"{profile.vendor}-{devices}-{digest}"
    if root.is_dir():
        return root
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".making-", dir=root.parent))
        for name, text in files.items():
            path = staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if name == profile.host.smi:
                path.chmod(0o755)
        staging.chmod(0o755)
        try:
            os.rename(staging, root)  # noqa: PTH104 - Path.rename says nothing about the target being a folder
        except OSError:
            shutil.rmtree(staging)
            if not root.is_dir():
                raise
    except OSError as error:
        raise CacheDirectoryError(
            f"the simulator keeps its fake host in {root.parent}, which cannot be written ({error}). "
            f"Set {CACHE_ENVVAR} to a folder that can."
        ) from error
    return root
