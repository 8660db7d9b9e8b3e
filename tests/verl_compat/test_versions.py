# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""All four wheels on each supported verl, and a clear word on the ones before."""

import sys

import pytest
from wheelkit import VENDORS, our_engines, run

pytestmark = [pytest.mark.slow, pytest.mark.ci]

LOAD_ALL = """
import verl
at_import = dict(version=verl.__version__, frozen=frozen(), workers=workers(), platforms=platforms())
import verl.workers.engine
answer(**at_import, engines=engines(), problems=problems())
"""


@pytest.mark.parametrize("version", ["0.9.0", "0.9.1"])
def test_all_wheels_work_on_a_supported_verl(version, other_verl, forks):
    found = forks.run(LOAD_ALL, first=[other_verl(version)])
    assert found["version"] == version
    assert not found["frozen"], "a wheel fixed verl's platform while it was loaded"
    assert found["workers"] == []
    for vendor in VENDORS:
        assert found["platforms"][vendor] == f"verl_hw_{vendor}.platform"
    assert {tuple(one) for one in found["engines"]} == our_engines(*VENDORS)
    assert found["problems"] == []
    assert found.warnings == []


@pytest.mark.parametrize("version", ["0.7.1", "0.8.0"])
def test_an_older_verl_is_refused_in_one_line_that_names_the_version_needed(version, other_verl):
    folder = other_verl(version)
    script = f"import sys; sys.path.insert(0, {str(folder)!r}); import verl_hw_cambricon"
    done = run([sys.executable, "-c", script], check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "VerlVersionError" in last
    assert "verl-hw-cambricon needs verl>=0.9" in last
    assert f"found verl {version}" in last
    assert "pip install -U" in last
