# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the operating system grants."""

import os
import resource
import shutil
from pathlib import Path

from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.model import Finding, ok, skip, warn
from verl_hw_tools.doctor.registry import check

# Ray 2.60: the object store takes 30 % of the memory, and no more than 10 GB unless shared memory is larger; where
# shared memory is smaller it goes to a folder on disk (ray/_private/ray_constants.py, services.py).
_OBJECT_STORE_PART = 0.3
_OBJECT_STORE_BYTES = 10 * 10**9
# Ray raises its own soft limit as far as the hard one, and recommends this much (ray/_private/worker.py).
_OPEN_FILES = 8192


@check(
    "system.shm", why="Ray keeps its objects there, and collective libraries and data loaders share memory through it"
)
def shm(_facts: Facts) -> Finding:
    """Shared memory is large enough for Ray's object store."""
    folder = Path("/dev/shm")  # noqa: S108 - the size is asked, nothing is written
    if not folder.is_dir():
        return skip("there is no /dev/shm")
    total = shutil.disk_usage(folder).total
    memory = memory_bytes()
    needed = _OBJECT_STORE_BYTES if memory is None else min(int(memory * _OBJECT_STORE_PART), _OBJECT_STORE_BYTES)
    if total < needed:
        return warn(
            f"{total / 10**9:.2f} GB",
            expected=f"{needed / 10**9:.1f} GB: what Ray's object store takes on this machine",
            mend=f"docker run --shm-size={needed // 10**9 + 1}g ...   # or: mount -o remount,size=... /dev/shm",
        )
    return ok(f"{total / 10**9:.1f} GB")


@check("system.open_files", why="Ray opens a socket for every worker and ends with 'too many open files'")
def open_files(_facts: Facts) -> Finding:
    """The limit of open files is large enough for Ray."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _OPEN_FILES:
        return warn(
            f"at most {hard} open files",
            expected=f"{_OPEN_FILES}, as Ray recommends",
            mend="docker run --ulimit nofile=65536:65536 ...   # or raise it in /etc/security/limits.conf",
        )
    return ok(f"{soft}, and Ray can raise it to {'any number' if hard == resource.RLIM_INFINITY else hard}")


def memory_bytes() -> int | None:
    """Memory of the machine, or of the container where that is less; None where neither says so."""
    try:
        pages = max(os.sysconf("SC_PHYS_PAGES"), 0) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # the C library reads it from a /proc that is not there
        pages = 0
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limit = Path(file).read_text(encoding="ascii").strip()
        except OSError:
            continue  # not a container, or the other version of control groups
        if limit.isdecimal():
            return min(pages or int(limit), int(limit))
    return pages or None
