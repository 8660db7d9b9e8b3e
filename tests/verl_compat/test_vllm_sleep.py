# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A chip whose vLLM cannot sleep: verl's rollout configuration is refused with a reason, on that chip alone."""

import pytest

SCRIPT = """
import verl
from verl.workers.config import RolloutConfig
def said(**settings):
    try:
        RolloutConfig(**settings)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"
from verl_hw_core import upstream
from verl_hw_core.upstream import patches
facts = dict(
    version=verl.__version__,
    in_force="vllm-sleep" in patches.in_force(),
    default=said(name="vllm"),
    kept=said(name="vllm", free_cache_engine=False),
    other=said(name="hf_bringup"),
    verls_own=said(name="vllm", free_cache_engine=False, mode="sync"),
)
upstream.restore("vllm-sleep")
answer(**facts, restored=said(name="vllm"), problems=problems())
"""


def check_refused(found):
    assert found["in_force"]
    assert found["default"].startswith("RolloutConfigError: ")
    assert "Enflame GCU has no sleep mode" in found["default"]
    assert "actor_rollout_ref.rollout.free_cache_engine=False" in found["default"]
    assert found["kept"] == found["other"] == found["restored"] == "accepted"
    assert "sync" in found["verls_own"]
    assert found["verls_own"].startswith("ValueError: ")
    assert found["problems"] == []


def test_refused_where_the_chip_cannot(forks):
    check_refused(forks.run(SCRIPT, env={"VERL_PLATFORM": "enflame"}))


@pytest.mark.parametrize("vendor", ["cambricon", "intel", "metax"])
def test_verl_decides_elsewhere(vendor, forks):
    found = forks.run(SCRIPT, env={"VERL_PLATFORM": vendor})
    assert not found["in_force"]
    assert found["default"] == found["kept"] == "accepted"


@pytest.mark.slow
@pytest.mark.ci
def test_refused_on_the_oldest_supported_verl(other_verl, forks):
    found = forks.run(SCRIPT, env={"VERL_PLATFORM": "enflame"}, first=[other_verl("0.9.0")])
    assert found["version"] == "0.9.0"
    check_refused(found)
