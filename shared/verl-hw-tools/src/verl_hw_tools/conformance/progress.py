# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a run tells while it goes on. This one says nothing; the command has one that draws a bar."""

from verl_hw_tools.conformance.results import CheckResult


class Progress:
    """Receives what a run does. Override what you want to see."""

    def survey(self) -> None:
        """The run looks which devices and checks there are."""

    def begin(self, checks: int) -> None:
        """The run will do this number of checks."""

    def check(self, check_id: str) -> None:
        """A check begins."""

    def result(self, result: CheckResult) -> None:
        """A check has ended."""
