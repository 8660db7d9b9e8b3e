# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""One warm parent process for all cases that import verl."""

from collections.abc import Iterator

import pytest
from forkkit import Forks


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Processes in which verl was never imported, and torch, transformers and Ray were."""
    with Forks() as parent:
        yield parent
