# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The ledger of places where verl-hw changes, or reaches into, somebody else's code."""

from verl_hw_core.upstream.ledger import LEDGER, LedgerRow
from verl_hw_core.upstream.patches import (
    add_kernel,
    applies,
    apply,
    check,
    in_force,
    original,
    put,
    replace,
    replaces,
    require_applied,
    restore,
    when_imported,
)

__all__ = [
    "LEDGER",
    "LedgerRow",
    "add_kernel",
    "applies",
    "apply",
    "check",
    "in_force",
    "original",
    "put",
    "replace",
    "replaces",
    "require_applied",
    "restore",
    "when_imported",
]
