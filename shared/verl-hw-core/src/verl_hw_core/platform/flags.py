# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Yes/no environment variables."""

import logging
import os

logger = logging.getLogger("verl_hw_core")

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"", "0", "false", "f", "no", "n", "off"})

_warned: set[tuple[str, str]] = set()


def env_flag(name: str) -> bool:
    """Return whether the variable ``name`` says yes; unset is no, and so, with one WARNING, is any other word."""
    value = os.environ.get(name, "")
    word = value.strip().lower()
    if word not in _TRUE | _FALSE and (name, value) not in _warned:
        _warned.add((name, value))
        logger.warning("%s=%r is neither yes nor no and is read as no; use %s=1 or %s=0", name, value, name, name)
    return word in _TRUE
