# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Other versions of verl."""

import pytest
from wheelkit import from_index, uv


@pytest.fixture(scope="session")
def other_verl(tmp_path_factory):
    """Return a function: version -> folder with that verl alone, to be put before the locked one."""

    def fetch(version):
        folder = tmp_path_factory.mktemp("verl") / version
        done = from_index([uv(), "pip", "install", "--no-deps", "--target", folder, f"verl=={version}"])
        assert done.returncode == 0, done.stderr
        return folder

    return fetch
