# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Train two mini-batches with verl's own worker under each configuration of a list, and write down the numbers.

Usage: ``python walk_program.py ENGINE MODELS_FOLDER OUT_FOLDER CASES.json WORLD_SIZE...``, where ENGINE is ``fsdp`` or
``megatron`` and CASES.json holds lists of overrides of verl's configuration. The configuration is composed as
``main_ppo`` composes it, and becomes a worker and batches as verl's trainer makes them, so that a setting which verl
loses on the way is seen to have no effect.
"""

import gc
import json
import os
import sys
import warnings
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import verl
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf, open_dict
from rank_start import run_ranks
from verl import DataProto
from verl.plugin.platform import get_platform
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass, validate_config
from verl.utils.model import compute_position_id_with_mask
from verl.workers.engine import EngineRegistry
from verl.workers.engine_workers import ActorRolloutRefWorker, TrainingWorker, TrainingWorkerConfig
from verl.workers.utils.losses import value_loss
from verl.workers.utils.padding import left_right_2_no_padding

SEQUENCES, LENGTH, RESPONSE, VOCABULARY, MINI_BATCHES = 8, 16, 8, 256, 2
EXACT = "{param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}"


def baseline(engine: str, models: Path, ranks: int) -> list[str]:
    """fp32, no compiler, and an epsilon that keeps AdamW from turning rounding into steps; two mini-batches.

    No weight decay: Megatron, unlike FSDP, spares biases and norms.
    """
    found = [
        f"model_engine={'dp' if engine == 'fsdp' else engine}",
        f"trainer.n_gpus_per_node={ranks}",
        f"data.train_batch_size={SEQUENCES}",
        "actor_rollout_ref.rollout.name=hf_bringup",
        "actor_rollout_ref.rollout.tensor_model_parallel_size=1",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2",
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=2",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={SEQUENCES // MINI_BATCHES}",
    ]
    for role in ("actor_rollout_ref.actor", "critic"):
        model = "critic.model" if role == "critic" else "actor_rollout_ref.model"
        folder = "value_model" if role == "critic" else "language_model"
        found += [
            f"{model}.path={models / folder}",
            f"+{model}.override_config.attn_implementation=sdpa",
            f"{role}.ppo_micro_batch_size_per_gpu=2",
            f"{role}.optim.lr=1e-3",
            f"{role}.optim.weight_decay=0.0",
            f"{role}.optim.total_training_steps=10",
            *(_fsdp(role) if engine == "fsdp" else _megatron(role)),
        ]
    return found


def _fsdp(role: str) -> list[str]:
    engine = "critic.fsdp" if role == "critic" else f"{role}.fsdp_config"
    return [
        f"{role}.strategy=fsdp2",
        f"{engine}.use_torch_compile=False",
        f"+{engine}.mixed_precision={EXACT}",
        f"++{role}.optim.override_optimizer_config={{eps:1e-4}}",
    ]


def _megatron(role: str) -> list[str]:
    """float32 is verl's to refuse and megatron_float32.py's to allow."""
    return [
        f"{role}.megatron.vanilla_mbridge=True",
        f"{role}.megatron.dtype=float32",
        f"++{role}.optim.override_optimizer_config={{adam_eps:1e-4}}",
    ]


@cache
def composed(engine: str, models: Path, ranks: int) -> DictConfig:
    """verl's configuration with the baseline's overrides; composing costs more than training here."""
    folder = Path(verl.__file__).parent / "trainer" / "config"
    with initialize_config_dir(config_dir=str(folder), version_base=None):
        config = compose("ppo_trainer", overrides=baseline(engine, models, ranks))
    with open_dict(config):
        for section in ("reward", "reward_model", "distillation", "skip", "transfer_queue"):
            del config[section]  # copying what no worker reads takes longer than a step
    return config


def overridden(config: DictConfig, overrides: list[str]) -> DictConfig:
    """A copy with ``path=value`` set; as with hydra, ``+path=value`` adds what is not there."""
    config = deepcopy(config)
    for override in overrides:
        path, text = override.lstrip("+").split("=", 1)
        OmegaConf.update(config, path, OmegaConf.from_dotlist([f"value={text}"]).value, force_add=override[0] == "+")
    return config


def critic_worker(config: Any) -> TrainingWorker:
    """As verl's trainer builds it (trainer/ppo/v1/trainer_base.py)."""
    critic = omega_conf_to_dataclass(config)
    critic.engine.infer_max_token_len_per_gpu = critic.ppo_infer_max_token_len_per_gpu
    critic.engine.max_token_len_per_gpu = critic.ppo_infer_max_token_len_per_gpu
    worker = TrainingWorker(
        TrainingWorkerConfig(
            model_type="value_model",
            model_config=critic.model,
            engine_config=critic.engine,
            optimizer_config=critic.optim,
            checkpoint_config=critic.checkpoint,
        )
    )
    worker.reset()
    worker.set_loss_fn(partial(value_loss, config=critic))
    return worker


def batch_of(engine: Any, seed: int) -> Any:
    """This rank's part of a global batch: its share of each mini-batch, as verl's driver deals them out."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, VOCABULARY, (SEQUENCES, LENGTH), generator=generator)
    mask = torch.ones_like(ids)
    for row in range(SEQUENCES):
        mask[row, : row % 3] = 0
        mask[row, LENGTH - row % 2 :] = 0
    ids = ids * mask
    shape = (SEQUENCES, RESPONSE)
    columns = {
        "input_ids": ids,
        "prompts": ids[:, :-RESPONSE],
        "responses": ids[:, -RESPONSE:],
        "attention_mask": mask,
        "response_mask": mask[:, -RESPONSE:],
        "position_ids": compute_position_id_with_mask(mask),
        "old_log_probs": -5.5 + 0.3 * torch.randn(shape, generator=generator),
        "ref_log_prob": -5.5 + 0.3 * torch.randn(shape, generator=generator),
        "advantages": torch.randn(shape, generator=generator),
        "values": torch.randn(shape, generator=generator),
        "returns": torch.randn(shape, generator=generator),
    }
    size, rank = engine.get_data_parallel_size(), engine.get_data_parallel_rank()
    whole = torch.arange(SEQUENCES).view(MINI_BATCHES, size, -1)
    mine = whole[:, rank].flatten().tolist()
    batch = left_right_2_no_padding(DataProto.from_single_dict(columns, meta_info={"temperature": 1.0}).to_tensordict())
    return tu.index_select_tensor_dict(batch, mine)


def told(batch: Any, config: Any, section: Any) -> Any:
    """The batch with what verl's trainer tells the workers about it (_update_actor, _update_critic)."""
    mini_batch = section.ppo_mini_batch_size * config.actor_rollout_ref.rollout.n
    tu.assign_non_tensor(
        batch,
        calculate_entropy=section.get("calculate_entropy", False) or section.get("entropy_coeff", 0) != 0,
        global_batch_size=mini_batch,
        mini_batch_size=mini_batch,
        epochs=section.ppo_epochs,
        seed=section.data_loader_seed,
        dataloader_kwargs={"shuffle": section.shuffle},
        temperature=config.actor_rollout_ref.rollout.temperature,
    )
    return batch


def weights(engine: Any) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().cpu().double().clone() for name, tensor in engine.get_per_tensor_param()[0]}


def run(kind: str, models: Path, overrides: list[str]) -> dict[str, Any]:
    """Numbers of inference and of one update (two mini-batches, each with a step of the optimizer)."""
    torch.manual_seed(0)
    is_critic = any(override.lstrip("+").startswith("critic.") for override in overrides)
    config = overridden(composed(kind, models, dist.get_world_size()), overrides)
    validate_config(config, use_reference_policy=True, use_critic=is_critic)
    if is_critic:
        worker = critic_worker(config.critic)
        engine, update, infer = worker.engine, worker.train_mini_batch, worker.infer_batch
    else:
        outer = ActorRolloutRefWorker(config.actor_rollout_ref, role="actor")
        outer.init_model()
        engine, update, infer = outer.actor.engine, outer.update_actor, outer.compute_log_prob
    section = config.critic if is_critic else config.actor_rollout_ref.actor
    question = batch_of(engine, seed=1)
    tu.assign_non_tensor(question, calculate_entropy=not is_critic, compute_loss=False, temperature=1.0)
    answer = infer(question)
    before = weights(engine)
    metrics: list[dict[str, float]] = []
    for seed in (2, 3):
        found = update(told(batch_of(engine, seed), config, section))
        if found is not None:
            found = tu.get(found, "metrics")
            metrics.append({name: _numbers(found[name]) for name in ("loss", "grad_norm", "lr") if name in found})
    after = weights(engine)
    return {
        "inferred": {} if answer is None else _sums(answer),
        "metrics": metrics,
        "weights": {name: [value.sum().item(), value.square().sum().item()] for name, value in before.items()},
        "changes": {name: _sum_and_norm(after[name] - before[name]) for name in before},
    }


def _sums(answer: Any) -> dict[str, list[float]]:
    names = [name for name in ("log_probs", "entropy", "values") if name in answer.keys()]  # noqa: SIM118
    return {name: [float(row.double().sum()) for row in answer[name].unbind()] for name in names}


def _sum_and_norm(value: torch.Tensor) -> list[float]:
    return [value.sum().item(), value.norm().item()]


def _numbers(value: Any) -> list[float]:
    return [float(one) for one in (value if isinstance(value, list) else [value])]


def outcome(kind: str, models: Path, overrides: list[str]) -> dict[str, Any]:
    try:
        return run(kind, models, overrides)
    except Exception as error:  # noqa: BLE001 - what a setting does is the question
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        gc.collect()


def run_rank(kind: str, models: Path, cases: list[list[str]], _rank: int) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore")
    return [outcome(kind, models, overrides) for overrides in cases]


def main() -> None:
    kind, models, out, cases, *world_sizes = sys.argv[1:]
    platform = get_platform()
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="0")  # verl's worker reads them; the group is there already
    if kind == "megatron":
        EngineRegistry.get_engine_cls("language_model", kind).load()  # imports Megatron before the forks
    place = Path(out), platform.device_name, platform.communication_backend_name()
    for size in map(int, world_sizes):
        run_ranks(partial(run_rank, kind, Path(models), json.loads(Path(cases).read_text())), size, *place)


if __name__ == "__main__":
    main()
