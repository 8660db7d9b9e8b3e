# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Entry-point groups with which other packages declare something for a training run."""

import logging
from importlib.metadata import entry_points

logger = logging.getLogger("verl_hw_core")

_called: set[tuple[str, str]] = set()


def call_entry_points(group: str, what: str) -> None:
    """Call each object of a group, once in a process; one that fails is left out with a warning.

    Args:
        group: The entry-point group; its objects are called without arguments.
        what: What they declare, for the warning.
    """
    for entry_point in sorted(entry_points(group=group), key=lambda point: point.name):
        if (group, entry_point.value) in _called:
            continue
        _called.add((group, entry_point.value))
        try:
            entry_point.load()()
        except Exception as error:  # noqa: BLE001 - another package's failure must not stop a run that needs none of it
            logger.warning(
                "%s of entry point %r (%s) are left out: %s: %s",
                *(what, entry_point.name, entry_point.value, type(error).__name__, error),
            )
