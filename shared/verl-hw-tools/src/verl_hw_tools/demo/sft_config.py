# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What verl's SFT trainer is told: its own options, nothing that is not in its documentation."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from verl_hw_tools.demo.assets import LONGEST_SEQUENCE
from verl_hw_tools.demo.workspace import RunFolder, Workspace

BATCH_PER_PROCESS = 4
LEARNING_RATE = 5e-3


@dataclass(frozen=True, kw_only=True)
class SftSettings:
    """Size and kind of one demo.

    Attributes:
        steps: Training steps of the uninterrupted run.
        processes: Number of training processes, one device each.
        strategy: verl's name of the training engine, ``"fsdp"``, ``"fsdp2"`` or ``"megatron"``.
        seed: Decides data, weights and order.
    """

    steps: int
    processes: int
    strategy: str
    seed: int

    @property
    def batch(self) -> int:
        """Conversations per step, over all processes."""
        return BATCH_PER_PROCESS * self.processes

    @property
    def resume_from(self) -> int:
        """The step whose checkpoint the second launch starts from."""
        return self.steps // 2

    @property
    def held_out(self) -> int:
        """Conversations kept from training."""
        return 2 * self.batch

    @property
    def pairs(self) -> int:
        """Pairs that are needed so that one epoch holds all steps."""
        return self.steps * self.batch + self.held_out


def launch_command(settings: SftSettings, run: RunFolder, overrides: list[str]) -> list[str]:
    """Command line of one torchrun launch of verl's SFT trainer."""
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"),
        f"--nproc-per-node={settings.processes}",
        *("--redirects=3", f"--log-dir={run.rank_logs}"),
        *("-m", "verl.trainer.sft_trainer", *overrides),
    ]


def overrides(settings: SftSettings, workspace: Workspace, run: RunFolder, checkpoint: Path | None) -> list[str]:
    """verl's options for one launch.

    Args:
        settings: Size and kind of the demo.
        workspace: Where model and data are.
        run: Where this launch writes.
        checkpoint: The ``global_step_<n>`` folder to resume from, or None for a run from the start.
    """

    def name(path: Path) -> str:
        # Relative to the working directory: hydra's grammar would trip over characters of the user's folders.
        return str(path.relative_to(workspace.root))

    return [
        f"data.train_files={name(workspace.data / 'train.parquet')}",
        f"data.val_files={name(workspace.data / 'held-out.parquet')}",
        f"data.train_batch_size={settings.batch}",
        f"data.micro_batch_size_per_gpu={BATCH_PER_PROCESS}",
        f"data.max_length={LONGEST_SEQUENCE}",
        f"data.max_token_len_per_gpu={LONGEST_SEQUENCE * BATCH_PER_PROCESS}",
        "data.num_workers=0",
        "data.pad_mode=no_padding",
        "data.ignore_input_ids_mismatch=True",
        # Weights of a resumed run must come from the checkpoint alone, so it starts from others.
        f"model.path={name(workspace.model if checkpoint is None else workspace.other_model)}",
        "model.use_remove_padding=True",
        "+model.override_config.attn_implementation=eager",
        *_engine(settings),
        f"engine.seed={settings.seed}",
        f"optim.lr={LEARNING_RATE}",
        f"trainer.seed={settings.seed}",
        f"trainer.default_local_dir={name(run.checkpoints)}",
        f"trainer.total_training_steps={settings.steps}",
        "trainer.total_epochs=1",
        f"trainer.save_freq={settings.resume_from}",
        "trainer.test_freq=-1",
        "trainer.logger=[console,file]",
        "trainer.project_name=verl-hw-demo",
        "trainer.experiment_name=sft",
        *_resume(checkpoint, name),
        f"hydra.run.dir={name(run.root)}",
        "hydra.output_subdir=null",
        "hydra/job_logging=none",
        "hydra/hydra_logging=none",
    ]


def _engine(settings: SftSettings) -> list[str]:
    """The engine's own options."""
    if settings.strategy == "megatron":
        return [
            "engine=megatron",
            "optim=megatron",
            "optim.lr_decay_style=constant",
            "engine.vanilla_mbridge=True",
            # Two ways of being parallel where the processes allow it: within a layer, and over the data.
            f"engine.tensor_model_parallel_size={2 if settings.processes % 2 == 0 else 1}",
        ]
    return [
        f"engine.strategy={settings.strategy}",
        f"engine.fsdp_size={settings.processes}",
        # Compiling takes longer than training a model this small.
        "engine.use_torch_compile=False",
    ]


def _resume(checkpoint: Path | None, name: Callable[[Path], str]) -> list[str]:
    if checkpoint is None:
        return ["trainer.resume_mode=disable"]
    return ["trainer.resume_mode=resume_path", f"trainer.resume_from_path={name(checkpoint)}"]
