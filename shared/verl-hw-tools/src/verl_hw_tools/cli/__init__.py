# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The ``verl-hw`` command."""

import errno
import io
import os
import sys

from verl_hw_tools.cli.interrupt import Interrupted, raise_on_interrupt


def main() -> None:
    """Entry point of the console script."""
    raise_on_interrupt()
    for stream in (sys.stdout, sys.stderr):
        # A path or a bar that the terminal's encoding lacks must not end the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        from verl_hw_tools.cli.app import app

        try:
            app()
        finally:
            if sys.stdout is not None:  # it is None where the shell closed it
                sys.stdout.flush()
    except Interrupted as interrupted:
        sys.stderr.write(f"verl-hw: stopped by {interrupted}; nothing is left running\n")
        sys.exit(interrupted.exit_code)
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        _end_without_output(error)


_CANNOT_WRITE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO)


def _end_without_output(error: OSError) -> None:
    """End with one line where there is no room for the output, and without where nobody reads it (as in ``| head``)."""
    # What Python still holds back would fail again when it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        sys.exit(1)  # as click and rich end then
    sys.stderr.write(f"verl-hw: {error.filename or 'the output'} cannot be written: {error.strerror}\n")
    sys.exit(2)
