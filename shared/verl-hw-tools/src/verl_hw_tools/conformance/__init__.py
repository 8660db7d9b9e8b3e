# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The conformance suite: does a device, real or simulated, do what verl needs of it?

Run it with ``verl-hw check`` or, from a test, with :func:`run`. A package outside this repository adds checks through
the entry-point group ``verl_hw.checks``; see docs/check.md. Nothing here imports torch: each group of checks runs in
processes of its own, so that a check that crashes or hangs is a result and not the end of the suite.
"""

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.registry import Check, check
from verl_hw_tools.conformance.results import CheckResult, Report, Status
from verl_hw_tools.conformance.runner import Settings, run
from verl_hw_tools.conformance.verdicts import CheckFailed, CheckSkipped, CheckWarned, require

__all__ = [
    "Bench",
    "Check",
    "CheckFailed",
    "CheckResult",
    "CheckSkipped",
    "CheckWarned",
    "Report",
    "Settings",
    "Status",
    "check",
    "require",
    "run",
]
