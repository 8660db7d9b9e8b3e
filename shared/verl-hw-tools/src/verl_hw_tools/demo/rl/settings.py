# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What verl's PPO trainer is told: its own options, nothing that is not in its documentation."""

import sys
from dataclasses import dataclass
from pathlib import Path

from verl_hw_core.rollout import NAME as ROLLOUT
from verl_hw_tools.demo.rl import engine_options, task
from verl_hw_tools.demo.workspace import RunFolder, Workspace

PROMPTS_PER_STEP = 16
ANSWERS_PER_PROMPT = 8
_HELD_OUT = 16
_TRAINER = "verl.trainer.main_ppo"
# verl reserves three processors for each worker; the rest is for its other actors. None is occupied by that.
_CPUS_PER_WORKER, _CPUS_OF_A_NODE = 3, 8
_OBJECT_STORE_BYTES = 256 * 2**20


@dataclass(frozen=True, kw_only=True)
class RlSettings:
    """Size and kind of one demo.

    Attributes:
        algorithm: ``"grpo"``, or ``"ppo"`` with a critic.
        steps: Training steps.
        nodes: Nodes of the Ray cluster; more than one are simulated on this machine.
        processes: Training processes of a node, one device each.
        seed: Decides data, weights, order and answers.
        strategy: verl's name of the training engine, ``"fsdp"``, ``"fsdp2"`` or ``"megatron"``.
    """

    algorithm: str
    steps: int
    nodes: int
    processes: int
    seed: int
    strategy: str = "fsdp2"

    @property
    def dtype(self) -> str:
        """Of all computation: verl gives its Megatron engine no float32."""
        return "bfloat16" if self.strategy == engine_options.MEGATRON else "float32"

    @property
    def workers(self) -> int:
        """Training processes of all nodes."""
        return self.nodes * self.processes

    @property
    def engines(self) -> int:
        """Engines of all workers: actor, reference policy and, with PPO, critic."""
        return self.workers * (3 if self.algorithm == "ppo" else 2)

    @property
    def prompts(self) -> int:
        """Prompts that are needed so that one epoch holds all steps and the validation file is not empty."""
        return self.steps * PROMPTS_PER_STEP + _HELD_OUT

    @property
    def cpus(self) -> int:
        """Processors that a node offers to Ray, whatever it has: here they only count workers."""
        return _CPUS_PER_WORKER * self.processes + _CPUS_OF_A_NODE


def write_data(folder: Path, settings: RlSettings) -> list[tuple[str, str]]:
    """Write ``train.parquet`` and ``held-out.parquet``, and return the training prompts."""
    pairs = task.prompts(settings.prompts, settings.seed)
    task.write_prompts(folder / "held-out.parquet", pairs[:_HELD_OUT])
    task.write_prompts(folder / "train.parquet", pairs[_HELD_OUT:])
    return pairs[_HELD_OUT:]


def launch_command(settings: RlSettings, overrides: list[str]) -> list[str]:
    """Command line that runs verl's PPO trainer."""
    if settings.nodes == 1:
        return [sys.executable, "-m", _TRAINER, *overrides, *_own_cluster(settings)]
    program = [sys.executable, "-m", "verl_hw_tools.demo.rl.simulated_nodes"]
    options = [f"--nodes={settings.nodes}", f"--cpus={settings.cpus}", f"--devices={settings.processes}"]
    return [*program, *options, _TRAINER, *overrides]


def _own_cluster(settings: RlSettings) -> list[str]:
    return [
        # Never another cluster that runs on this machine.
        "+ray_kwargs.ray_init.address=local",
        f"ray_kwargs.ray_init.num_cpus={settings.cpus}",
        f"+ray_kwargs.ray_init.num_gpus={settings.processes}",
        "+ray_kwargs.ray_init.include_dashboard=False",
        f"+ray_kwargs.ray_init.object_store_memory={_OBJECT_STORE_BYTES}",
    ]


def overrides(settings: RlSettings, workspace: Workspace, run: RunFolder) -> list[str]:
    """verl's options."""

    def name(path: Path) -> str:
        # Relative to the working directory: hydra's grammar would trip over characters of the user's folders.
        return str(path.relative_to(workspace.root))

    return [
        f"algorithm.adv_estimator={'gae' if settings.algorithm == 'ppo' else 'grpo'}",
        f"data.train_files={name(workspace.data / 'train.parquet')}",
        f"data.val_files={name(workspace.data / 'held-out.parquet')}",
        f"data.train_batch_size={PROMPTS_PER_STEP}",
        f"data.max_prompt_length={task.LONGEST_PROMPT}",
        f"data.max_response_length={task.ANSWER_LENGTH}",
        "data.dataloader_num_workers=0",
        f"data.seed={settings.seed}",
        *engine_options.options(
            strategy=settings.strategy,
            workers=settings.workers,
            seed=settings.seed,
            model=name(workspace.model),
            prompts=PROMPTS_PER_STEP,
            critic=settings.algorithm == "ppo",
        ),
        *_rollout("actor_rollout_ref.rollout", settings),
        f"reward.custom_reward_function.path=pkg://{task.__name__}",
        f"reward.custom_reward_function.name={task.compute_score.__name__}",
        "reward.num_workers=1",
        "trainer.v1.sampler.custom_sampler.path=pkg://verl_hw_tools.demo.rl.sampler",
        "trainer.v1.sampler.custom_sampler.name=OrderedReplayBuffer",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        f"trainer.nnodes={settings.nodes}",
        f"trainer.n_gpus_per_node={settings.processes}",
        f"trainer.total_training_steps={settings.steps}",
        "trainer.total_epochs=1",
        "trainer.val_before_train=False",
        "trainer.test_freq=-1",
        "trainer.save_freq=-1",
        "trainer.resume_mode=disable",
        f"trainer.default_local_dir={name(run.checkpoints)}",
        "trainer.logger=[console,file]",
        "trainer.project_name=verl-hw-demo",
        f"trainer.experiment_name={settings.algorithm}",
        f"hydra.run.dir={name(run.root)}",
        "hydra.output_subdir=null",
        "hydra/job_logging=none",
        "hydra/hydra_logging=none",
    ]


def _rollout(at: str, settings: RlSettings) -> list[str]:
    return [
        f"{at}.name={ROLLOUT}",
        f"{at}.n={ANSWERS_PER_PROMPT}",
        f"{at}.seed={settings.seed}",
        f"{at}.dtype={settings.dtype}",
        f"{at}.tensor_model_parallel_size=1",
        f"{at}.agent.num_workers=1",
    ]
