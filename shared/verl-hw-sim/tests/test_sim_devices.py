# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Fidelity of the devices: every check of every suite below ``children``, on every vendor."""

import re
from pathlib import Path

import pytest

# The first test of a vendor waits for all its suites, and in a fresh checkout for the compiler as well.
pytestmark = pytest.mark.timeout(1200)

SUITES = {
    "mask_checks": 1,
    "vendor_checks": 1,
    "device_checks": 1,
    "limit_checks": 1,
    "collective_checks": 2,
    "training_checks": 2,
}
VENDORS = ("cambricon", "enflame", "intel", "metax")
# enflame's native half is cambricon's: what its name cannot change is repeated at night, or not at all.
ENFLAME_SUITES = ("mask_checks", "vendor_checks")
ENFLAME_AT_NIGHT = ("device_checks", "limit_checks", "collective_checks")


def _suites(vendor, suite="simulated"):
    """The suites that share a process with this one."""
    if vendor != "enflame":
        return SUITES
    names = ENFLAME_AT_NIGHT if suite in ENFLAME_AT_NIGHT else ENFLAME_SUITES
    return {name: SUITES[name] for name in names}


def _checks(suite):
    text = (Path(__file__).parent / "children" / f"{suite}.py").read_text()
    return re.findall(r"^def (check_\w+)", text, re.MULTILINE)


CASES = [
    pytest.param(vendor, suite, check, marks=[pytest.mark.slow] * (vendor == "enflame" and suite in ENFLAME_AT_NIGHT))
    for vendor in VENDORS
    for suite in ((*ENFLAME_SUITES, *ENFLAME_AT_NIGHT) if vendor == "enflame" else SUITES)
    for check in _checks(suite)
]


@pytest.mark.parametrize(("vendor", "suite", "check"), CASES)
def test_simulated(vendor, suite, check, simulate):
    failure = simulate(vendor, _suites(vendor, suite)).failure(suite, check)
    assert failure is None, failure


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_backward_as_last_act_does_not_abort_the_process(vendor, simulate):
    failure = simulate(vendor, _suites(vendor)).failure("simulated", "check_exits")
    assert failure is None, failure


@pytest.mark.parametrize("vendor", VENDORS)
def test_start_up_is_quick_once_built(vendor, simulate):
    # 0.15 to 0.25 s of CPU time on a quiet machine, where importing torch takes 2.
    assert simulate(vendor, _suites(vendor)).start_share < 0.3
