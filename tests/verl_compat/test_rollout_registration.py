# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl finds the bring-up rollout by name in both of its tables, with nothing of it imported before."""

import pytest

SCRIPT = """
import verl
ours = lambda: sorted(name for name in sys.modules if name.startswith("verl_hw_core.rollout."))
at_import = dict(version=verl.__version__, workers=workers(), rollout=ours())
from verl.workers.rollout import base, replica
own = {("vllm", "async"), ("sglang", "async"), ("trtllm", "async")}
table = dict(kept=own <= set(base._ROLLOUT_REGISTRY), listed=ours())
from verl_hw_core import upstream
table["in_force"] = upstream.in_force()
from verl.workers.rollout.base import get_rollout_class
from verl.workers.rollout.replica import get_rollout_replica_class
found = [get_rollout_class("hf_bringup", "async"), get_rollout_replica_class("hf_bringup")]
upstream.restore("rollout-table")
answer(
    **at_import, **table,
    found=[one.__name__ for one in found], missing=[sorted(one.__abstractmethods__) for one in found],
    restored=("hf_bringup", "async") not in base._ROLLOUT_REGISTRY, problems=problems(),
)
"""


def check(found, version=None):
    assert version in (None, found["version"])
    assert found["workers"] == []
    assert found["rollout"] == found["listed"] == ["verl_hw_core.rollout.registry"]
    assert found["kept"], "verl's own rollouts are gone"
    assert found["in_force"].count("rollout-table") == 1
    assert found["found"] == ["BringupAdapter", "BringupReplica"]
    assert found["missing"] == [[], []]
    assert found["restored"]
    assert found["problems"] == []


@pytest.mark.parametrize("vendors", ["auto", "enflame", "metax"])
def test_any_vendors_wheel_brings_it(vendors, forks):
    check(forks.run(SCRIPT, env={"VERL_USE_EXTERNAL_PLUGINS": vendors}))


@pytest.mark.slow
@pytest.mark.ci
def test_on_the_oldest_supported_verl(other_verl, forks):
    check(forks.run(SCRIPT, first=[other_verl("0.9.0")]), "0.9.0")
