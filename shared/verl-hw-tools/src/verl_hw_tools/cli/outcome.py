# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How every subcommand ends: an error is one message and an exit code.

Exit codes: 0 as wanted, 1 it ran and the result is not as wanted, 2 it could not run as asked, 130 Ctrl-C.
"""

import traceback
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


@contextmanager
def own_faults(what: str) -> Iterator[None]:
    """Say that ``what`` itself broke, with the traceback, and end with 2: 1 says something about the machine.

    The traceback is what people paste, so it is without secrets.
    """
    try:
        yield
    except (VerlHwError, typer.Exit):
        raise
    except Exception as error:
        from verl_hw_tools.doctor.redaction import Redactor

        typer.echo(Redactor().secrets("".join(traceback.format_exception(error))), err=True, nl=False)
        typer.echo(f"verl-hw: the {what} itself broke, with the error above", err=True)
        raise typer.Exit(CANNOT_RUN) from error
