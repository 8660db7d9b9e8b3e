# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What can be imported of verl on a machine without our wheels can be imported with them, on a simulated chip.

Recipes import and subclass verl's engines, workers and trainers at import time; our hooks and placeholders are in the
way of some of these imports, and must not be seen.
"""

from pathlib import Path

import pytest
from raykit import answer_of

from verl_hw_sim import simulated_environment

PROGRAM = Path(__file__).with_name("import_every_module.py")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def without() -> dict:
    """Outcome with verl alone, on the CPU."""
    return answer_of(PROGRAM, VERL_USE_EXTERNAL_PLUGINS="none", VERL_HW_SIM="")


def test_most_of_verl_can_be_imported_here(without):
    # Or the comparison would say little: what fails needs vLLM, SGLang, TensorRT-LLM, VeOmni, ...
    assert without["tried"] > 300
    assert len(without["failed"]) < without["tried"] / 3


@pytest.mark.parametrize("vendor", ["cambricon", "intel"])
def test_the_same_modules_fail_with_our_wheels(without, vendor):
    found = answer_of(PROGRAM, **simulated_environment(vendor, 1))
    assert found["tried"] == without["tried"]
    assert {name: error for name, error in found["failed"].items() if name not in without["failed"]} == {}
