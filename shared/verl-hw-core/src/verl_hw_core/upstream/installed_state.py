# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a ledger row was read in the version that is installed."""

from importlib import metadata

from packaging.requirements import Requirement

from verl_hw_core.upstream.ledger import LedgerRow


def state(row: LedgerRow) -> str:
    """Say whether the installed version is one that the row was read in."""
    requirement = Requirement(row.versions)
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is not installed"
    # A vendor's build carries a local part (2.9.1+mlu1.29), and its pre-releases count as the version they lead to.
    known = requirement.specifier.contains(version.partition("+")[0], prereleases=True)
    return f"{requirement.name} {version}" + ("" if known else f": not tried, the row was read in {row.versions}")
