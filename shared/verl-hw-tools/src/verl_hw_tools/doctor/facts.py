# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the checks may look at: the installation and the machine as they are without importing torch, verl or a SDK."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from verl_hw_core.detection import Survey, VendorFinding, Verdict, survey
from verl_hw_core.detection.lookup import look_up
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform.table import requested_platform
from verl_hw_tools.choice import SIM_ENVVAR, Choice, choose
from verl_hw_tools.doctor.stages import ChildReport
from verl_hw_tools.installed import InstalledWheel, find_wheel, installed_wheels


@dataclass
class Facts:
    """What is known before a check runs. Looked up on first use and kept.

    Attributes:
        asked: Platform key or alias that ``--vendor`` named, or None.
        verl: What the process that loaded verl told; empty when none was run.
        ray: What the process that asked the Ray cluster told; empty when none was run.
        environ: The environment.
    """

    asked: str | None = None
    verl: ChildReport = field(default_factory=ChildReport)
    ray: ChildReport = field(default_factory=ChildReport)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @cached_property
    def wheels(self) -> tuple[InstalledWheel, ...]:
        """Installed vendor wheels, broken ones included."""
        return installed_wheels()

    @cached_property
    def specs(self) -> tuple[HardwareSpec, ...]:
        """Facts of the wheels that are whole."""
        return tuple(wheel.spec for wheel in self.wheels if wheel.spec is not None)

    @cached_property
    def survey(self) -> Survey:
        """Detection's evidence for every installed vendor, management tools included."""
        return survey(self.specs, thorough=True)

    @cached_property
    def choice(self) -> Choice:
        """What verl would use in a process started from here."""
        return choose(self.wheels)

    @cached_property
    def vendor(self) -> HardwareSpec | None:
        """The vendor that is judged: the one asked for, else the one that verl would use."""
        if self.asked is not None:
            return find_wheel(self.asked, self.wheels).facts
        return next((spec for spec in self.specs if spec.key == self.choice.vendor), None)

    @cached_property
    def finding(self) -> VendorFinding | None:
        """Detection's finding on :attr:`vendor`."""
        return None if self.vendor is None else self.survey.findings[self.vendor.key]

    @cached_property
    def present(self) -> bool:
        """Whether hardware of :attr:`vendor` is here, simulated, or demanded with ``VERL_PLATFORM``."""
        if self.vendor is None or self.finding is None:
            return False
        return (
            self.finding.verdict is Verdict.PRESENT
            or requested_platform() in self.vendor.names
            or (self.simulated and self.choice.vendor == self.vendor.key)
        )

    @cached_property
    def simulated(self) -> bool:
        """Whether processes with torch see simulated devices."""
        return bool(self.environ.get(SIM_ENVVAR)) and look_up("verl_hw_sim").spec is not None

    @property
    def verl_was_imported(self) -> bool:
        """Whether a process imported verl itself, and not only its plugins, and came through."""
        loaded = self.verl.data("verl")
        return bool(loaded and loaded["full"])
