# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""GRPO of mixtures of experts, with each engine on each simulated device, is the run of a plain CPU.

The reference is verl's own FSDP2 engine on device ``cpu``, with nothing of ours but the rollout. The families are those
of ``tests/conformance/test_experts.py``; a family that Megatron's bridge cannot build has no run there.
"""

from functools import partial
from pathlib import Path

import pytest
from grpo_runs import METRICS, REFERENCE, Run, run
from megatron_cases import ENGINES, FAMILIES, write_models

from verl_hw_tools.demo.rl.settings import RlSettings

STEPS = 3
STALL_SECONDS = 600.0
TOLERANCE = 1e-6
VOCABULARY = 264  # the demo's tokenizer
ALL_ENGINES = {
    "actor_rollout_ref.actor.optim.weight_decay": "0.0",  # Megatron decays no norm, FSDP's AdamW all parameters
    "actor_rollout_ref.actor.optim.lr": "5e-4",
    "+actor_rollout_ref.model.override_config.pad_token_id": "null",  # transformers trains no row of that token
}
FLOAT32 = {
    "actor_rollout_ref.actor.megatron.dtype": "float32",
    "actor_rollout_ref.ref.megatron.dtype": "float32",
    "actor_rollout_ref.rollout.dtype": "float32",
}

# The simulated devices compute experts one by one; verl's own engine knows only transformers' own name of the setting.
AS_THE_DEVICES = {"+actor_rollout_ref.model.override_config._experts_implementation": "eager"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]


def train(vendor: str, folder: Path, family: str, engine: str) -> Run:
    settings = RlSettings(algorithm="grpo", steps=STEPS, nodes=1, processes=2, seed=3, strategy=engine)
    megatron = engine == "megatron"
    return run(
        vendor,
        folder,
        settings,
        STALL_SECONDS,
        options={**ALL_ENGINES, **(FLOAT32 if megatron else {}), **(AS_THE_DEVICES if vendor == REFERENCE else {})},
        modules=("megatron_float32",) if megatron else (),
        model=partial(write_family, family),
    )


def write_family(family: str, folder: Path, _seed: int) -> None:
    written = folder.parent / "families"
    write_models(written, [family], VOCABULARY)
    for file in (written / family).iterdir():
        file.replace(folder / file.name)


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """Return a function that gives the CPU's run of a family."""
    known: dict[str, Run] = {}

    def of(family: str) -> Run:
        if family not in known:
            known[family] = train(REFERENCE, tmp_path_factory.mktemp(family), family, "fsdp2")
        return known[family]

    return of


CELLS = [
    (family, engine, vendor)
    for family in FAMILIES
    for engine in ENGINES
    for vendor in ("cambricon", "enflame", "intel")
    if (family, engine) != ("deepseek_v3", "megatron")
]


@pytest.mark.parametrize(("family", "engine", "vendor"), CELLS)
def test_the_run_is_that_of_a_plain_cpu(family, engine, vendor, references, tmp_path, monkeypatch) -> None:
    if (engine, vendor) == ("megatron", "intel"):
        monkeypatch.setenv("VERL_HW_CUDA_MIGRATION", "verl_hw_sim.cuda_migration")
    reference = references(family)
    found = train(vendor, tmp_path, family, engine)
    assert len(found.steps) == len(reference.steps) == STEPS
    assert found.answers == reference.answers
    for number, (ours, theirs) in enumerate(zip(found.steps, reference.steps, strict=True), 1):
        differing = {name: (ours[name], theirs[name]) for name in METRICS if abs(ours[name] - theirs[name]) > TOLERANCE}
        assert not differing, f"step {number}: {differing}"
        assert ours["training/rollout_probs_diff_max"] < 1e-5
    # The comparison would not see a run that learns nothing.
    assert min(step["actor/grad_norm"] for step in reference.steps) > 0.01
