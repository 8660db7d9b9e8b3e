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
# The same native half as cambricon's: what its name cannot change is not repeated.
ENFLAME_SUITES = {name: ranks for name, ranks in SUITES.items() if name != "training_checks"}


def _suites(vendor):
    return ENFLAME_SUITES if vendor == "enflame" else SUITES


def _checks(suite):
    text = (Path(__file__).parent / "children" / f"{suite}.py").read_text()
    return re.findall(r"^def (check_\w+)", text, re.MULTILINE)


CASES = [(vendor, suite, check) for vendor in VENDORS for suite in _suites(vendor) for check in _checks(suite)]


@pytest.mark.parametrize(("vendor", "suite", "check"), CASES)
def test_simulated(vendor, suite, check, simulate):
    failure = simulate(vendor, _suites(vendor)).failure(suite, check)
    assert failure is None, failure


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_backward_as_last_act_does_not_abort_the_process(vendor, simulate):
    failure = simulate(vendor, _suites(vendor)).failure("simulated", "check_exits")
    assert failure is None, failure


@pytest.mark.parametrize("vendor", VENDORS)
def test_start_up_is_quick_once_built(vendor, simulate):
    # 0.15 to 0.25 s of CPU time on a quiet machine, where importing torch takes 2.
    assert simulate(vendor, _suites(vendor)).start_share < 0.3
