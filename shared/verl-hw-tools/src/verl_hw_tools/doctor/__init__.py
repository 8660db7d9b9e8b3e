# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw doctor``: what is wrong with this installation for verl, why it matters and what to type.

How to add a check from another package: docs/doctor.md.
"""

from verl_hw_tools.conformance.results import Status
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.model import Finding, fail, ok, skip, warn
from verl_hw_tools.doctor.registry import Check, check

__all__ = ["Check", "Facts", "Finding", "Status", "check", "fail", "ok", "skip", "warn"]
