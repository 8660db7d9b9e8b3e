# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What comes with ``verl-hw-tools[accept]``, and the line to type when it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from verl_hw_tools.errors import MissingComponentError

INSTALL_LINE = "pip install 'verl-hw-tools[accept]'"


@contextmanager
def needed(package: str) -> Iterator[None]:
    """Import within this what the extra brings.

    Raises:
        MissingComponentError: The package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingComponentError(
            f"verl-hw accept needs {package}, and {error.name} is not installed here: {INSTALL_LINE}"
        ) from error
