# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How every subcommand ends: an error is one message and an exit code.

Exit codes: 0 as wanted, 1 it ran and the result is not as wanted, 2 it could not run as asked, 130 Ctrl-C.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from verl_hw_core.errors import TrainingFailedError, VerlHwError

FAILED = 1
CANNOT_RUN = 2


@contextmanager
def reported() -> Iterator[None]:
    """Turn the errors of verl-hw into a message and an exit code."""
    try:
        yield
    except VerlHwError as error:
        typer.echo(f"verl-hw: {error}", err=True)
        raise typer.Exit(FAILED if isinstance(error, TrainingFailedError) else CANNOT_RUN) from error
