# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Standard output for the report alone, whatever the code of others prints while it is made."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

_STDOUT, _STDERR = 1, 2


@contextmanager
def others_print_elsewhere() -> Iterator[None]:
    """Send to standard error what is written to standard output, by Python, a library or a child process.

    The facts of a vendor's wheel are Python, and so are the finders of modules: a banner of theirs is no JSON.
    """
    try:
        kept = os.dup(_STDOUT)
        os.dup2(_STDERR, _STDOUT)
    except OSError:  # one of the two is closed, as in "verl-hw doctor >&-": there is nothing to keep apart
        yield
        return
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)
