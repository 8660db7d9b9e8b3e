# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The ``verl-hw`` command."""

import io
import sys

from verl_hw_core.cli.interrupt import Interrupted, raise_on_interrupt


def main() -> None:
    """Entry point of the console script."""
    raise_on_interrupt()
    for stream in (sys.stdout, sys.stderr):
        # A path or a bar that the terminal's encoding lacks must not end the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        from verl_hw_core.cli.app import app

        app()
    except Interrupted as interrupted:
        sys.stderr.write(f"verl-hw: stopped by {interrupted}; nothing is left running\n")
        sys.exit(interrupted.exit_code)
