# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""GRPO on a simulated vendor is the same run as on a plain CPU: answers, rewards, log-probabilities, gradient norms.

Both runs are verl's unmodified ``main_ppo`` with the demo's options: Ray, two workers, FSDP2, reference policy,
offload, padding removal, dynamic batch size, weight sync, the bring-up rollout. The reference has verl's own engines on
device ``cpu`` and nothing of ours but the rollout.
"""

from pathlib import Path

import pytest
import torch
from grpo_runs import METRICS, REFERENCE, Run, run
from platformkit import needs_cpu_torch

from verl_hw_tools.demo.rl.settings import RlSettings

STEPS = 3
SETTINGS = RlSettings(algorithm="grpo", steps=STEPS, nodes=1, processes=2, seed=3)
STALL_SECONDS = 300.0
TOLERANCE = 1e-6
COMPARED = (*METRICS, "training/rollout_probs_diff_max")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(REFERENCE, tmp_path_factory.mktemp("reference"), SETTINGS, STALL_SECONDS)


@pytest.mark.parametrize(
    "vendor",
    [
        "cambricon",
        "enflame",
        "intel",
        pytest.param("metax", marks=needs_cpu_torch),
    ],
)
def test_the_run_is_that_of_a_plain_cpu(vendor: str, reference: Run, tmp_path: Path) -> None:
    found = run(vendor, tmp_path, SETTINGS, STALL_SECONDS)
    assert len(found.steps) == len(reference.steps) == STEPS
    assert found.answers == reference.answers
    for number, (ours, theirs) in enumerate(zip(found.steps, reference.steps, strict=True), 1):
        differing = {
            name: (ours[name], theirs[name]) for name in COMPARED if abs(ours[name] - theirs[name]) > TOLERANCE
        }
        assert not differing, f"step {number}: {differing}"
    assert found.losses.keys() == reference.losses.keys()
    assert len(found.losses) >= SETTINGS.workers * STEPS
    for name, ours in found.losses.items():
        for field, values in ours.items():
            torch.testing.assert_close(
                values, reference.losses[name][field], rtol=0, atol=TOLERANCE, msg=f"{name} {field}"
            )
    # The comparison would not see a run that learns nothing.
    norms = [step["actor/grad_norm"] for step in reference.steps]
    assert min(norms) > 0.01
    assert len({round(step["critic/rewards/mean"], 9) for step in reference.steps}) > 1
