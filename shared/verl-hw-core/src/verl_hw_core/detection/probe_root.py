# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Where absolute paths are looked up: the file system root, or a folder that stands in for it."""

import os
from pathlib import Path

from verl_hw_core.errors import ProbeRootError

PROBE_ROOT_ENVVAR = "VERL_HW_PROBE_ROOT"


def probe_root() -> Path:
    """Returns the folder below which device nodes, sysfs and tool directories are looked up.

    Raises:
        ProbeRootError: ``VERL_HW_PROBE_ROOT`` is set to something that is not a directory.
    """
    value = os.environ.get(PROBE_ROOT_ENVVAR, "")
    if not value:
        return Path("/")
    root = Path(value)
    if not root.is_dir():
        raise ProbeRootError(
            f"{PROBE_ROOT_ENVVAR}={value!r} must name a directory that stands in for '/', but there is none;"
            f" create it, or unset {PROBE_ROOT_ENVVAR} to look at the real machine"
        )
    return root.resolve()


def below(root: Path, absolute: str) -> Path:
    """Returns the place of an absolute path below ``root``."""
    return root / absolute.lstrip("/")
