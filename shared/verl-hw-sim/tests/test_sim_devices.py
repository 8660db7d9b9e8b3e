# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Fidelity of the devices: every check of every suite below ``children``, on every vendor."""

import re
from pathlib import Path

import pytest

SUITES = {
    "mask_checks": 1,
    "vendor_checks": 1,
    "device_checks": 1,
    "limit_checks": 1,
    "collective_checks": 2,
    "training_checks": 2,
}
VENDORS = ("cambricon", "enflame", "intel", "metax")


def _checks(suite):
    text = (Path(__file__).parent / "children" / f"{suite}.py").read_text()
    return re.findall(r"^def (check_\w+)", text, re.MULTILINE)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(("suite", "check"), [(suite, check) for suite in SUITES for check in _checks(suite)])
def test_simulated(vendor, suite, check, simulate):
    failure = simulate(vendor, SUITES).failure(suite, check)
    assert failure is None, failure


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_backward_as_last_act_does_not_abort_the_process(vendor, simulate):
    failure = simulate(vendor, SUITES).failure("simulated", "check_exits")
    assert failure is None, failure


@pytest.mark.parametrize("vendor", VENDORS)
def test_start_up_is_quick_once_built(vendor, simulate):
    # 0.15 to 0.25 s on a quiet machine; CPU time, since test machines are not quiet.
    assert simulate(vendor, SUITES).start_cpu_seconds < 0.6
