# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Fidelity of the devices: every check of ``children/device_checks.py`` on every vendor."""

import re
from pathlib import Path

import pytest

SCRIPT = "device_checks.py"
CHECKS = re.findall(r"^def (check_\w+)", (Path(__file__).parent / "children" / SCRIPT).read_text(), re.MULTILINE)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("vendor", ["cambricon", "enflame", "intel", "metax"])
def test_device(vendor, check, child_results):
    outcome = child_results(SCRIPT, vendor)[check]
    assert outcome is None, outcome
