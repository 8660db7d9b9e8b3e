# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Is there a Ray cluster to ask? Ray is not imported for the question."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

ADDRESS_ENVVAR = "RAY_ADDRESS"
_TEMP_ENVVAR = "RAY_TMPDIR"


def cluster_to_ask(environ: Mapping[str, str] = os.environ) -> str:
    """Where a running cluster was announced: ``RAY_ADDRESS``, or the file that ``ray start`` leaves on its node.

    Empty when there is none, and when ``RAY_ADDRESS`` asks for a new one.
    """
    address = environ.get(ADDRESS_ENVVAR, "").strip()
    if address and address not in ("local", "auto"):
        return f"{ADDRESS_ENVVAR}={address}"
    # Ray writes the address of the cluster that was started last into its temporary folder.
    folder = Path(environ.get(_TEMP_ENVVAR) or tempfile.gettempdir())
    file = folder / "ray" / "ray_current_cluster"
    return str(file) if file.is_file() and address != "local" else ""
