# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run the demo's GRPO with its own options, simulated or on the plain CPU platform, and keep its numbers."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import torch
from machine_speed import scaled
from platformkit import clean_environment

from verl_hw_sim import simulated_environment
from verl_hw_tools.demo.assets import write_model, write_tokenizer
from verl_hw_tools.demo.rl.launch import train
from verl_hw_tools.demo.rl.settings import RlSettings, overrides, write_data
from verl_hw_tools.demo.workspace import Workspace

TESTS = Path(__file__).parent.parent
REFERENCE = "cpu_reference"
METRICS = (
    "critic/rewards/mean",
    "critic/advantages/max",
    "actor/grad_norm",
    "actor/pg_loss",
    "actor/kl_loss",
    "actor/entropy",
    "rollout_corr/training_log_ppl",
    "rollout_corr/rollout_log_ppl",
    "response_length/mean",
)
"""What two runs that are the same have in common, at each step."""


@dataclass(frozen=True)
class Run:
    """What one run left.

    Attributes:
        steps: Metrics of each step, in verl's names.
        answers: Prompt, answer and score of each trajectory, by step and in the order of the batch.
        losses: What went into each policy loss, in order, by rank.
    """

    steps: list[dict]
    answers: list[list[tuple[str, str, float]]]
    losses: dict[str, dict[str, torch.Tensor]]


def run(
    vendor: str,
    folder: Path,
    settings: RlSettings,
    seconds: float,
    *,
    options: Mapping[str, str] = MappingProxyType({}),
    modules: Sequence[str] = (),
    model: Callable[[Path, int], object] = write_model,
) -> Run:
    """Train.

    Args:
        vendor: A vendor's key or :data:`REFERENCE`.
        folder: Where to write.
        settings: Size and kind of the run.
        seconds: Longest time without progress.
        options: verl's options to set beside the demo's, or instead of them.
        modules: What verl is to import in each process.
        model: Writes the model to a folder, from a seed.
    """
    root = folder / vendor
    workspace = Workspace(root)
    workspace.training.root.mkdir(parents=True)
    (root / "records").mkdir()
    write_tokenizer(workspace.model)
    model(workspace.model, settings.seed)
    write_data(workspace.data, settings)
    demos = overrides(settings, workspace, workspace.training)
    chosen = [
        *(one for one in demos if one.partition("=")[0] not in options),
        *(f"{name}={value}" for name, value in options.items()),
        "trainer.rollout_data_dir=answers",
        # One batch holds the answers of a step, so that both runs multiply matrices of the same shapes.
        f"+actor_rollout_ref.rollout.engine_kwargs.hf_bringup.batch_window_seconds={scaled(0.5)}",
    ]
    log = workspace.training.driver_log
    code = train(
        settings,
        workspace,
        chosen,
        environment=_environment(vendor, settings, root, modules),
        watch=lambda: log.exists() and log.stat().st_size,
        stall_seconds=scaled(seconds),
    )
    assert code == 0, log.read_text()[-6000:]
    return _read(root, workspace)


def _environment(vendor: str, settings: RlSettings, root: Path, more: Sequence[str]) -> dict[str, str]:
    modules = ["grpo_recorder", *more]
    if vendor == REFERENCE:
        modules.insert(0, REFERENCE)
        device = {"VERL_PLATFORM": REFERENCE}
    else:
        device = simulated_environment(vendor, settings.workers)
    path = [str(TESTS / "support"), str(TESTS / "conformance")]
    return clean_environment(
        **device,
        VERL_USE_EXTERNAL_MODULES=",".join(modules),
        GRPO_RECORDS=str(root / "records"),
        PYTHONPATH=os.pathsep.join(path),
        PYTHONWARNINGS="ignore",
        HYDRA_FULL_ERROR="1",
        HF_HUB_OFFLINE="1",
        OMP_NUM_THREADS="1",
    )


def _read(root: Path, workspace: Workspace) -> Run:
    lines = workspace.training.metrics.read_text().splitlines()
    answers = []
    for path in sorted((root / "answers").iterdir(), key=lambda one: int(one.stem)):
        rows = map(json.loads, path.read_text().splitlines())
        answers.append(sorted((row["input"], row["output"], row["score"]) for row in rows))
    return Run(
        steps=[json.loads(line)["data"] for line in lines],
        answers=answers,
        losses={path.stem: torch.load(path) for path in sorted((root / "records").iterdir())},
    )
