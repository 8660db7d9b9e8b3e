# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Drive verl's own engine on whatever platform this process resolves, and write down every number as JSON.

Usage: ``python engine_program.py MODELS_FOLDER OUT_FOLDER WORLD_SIZE...``, where MODELS_FOLDER holds one model folder a
model type. verl is imported once and ranks are forked
from it: the import costs more than everything else here.
"""

import sys
import warnings
from functools import partial
from pathlib import Path

import replaced_names
import torch
import torch.distributed as dist
from rank_start import run_ranks
from verl import DataProto
from verl.plugin.platform import get_platform
from verl.trainer.config import CheckpointConfig
from verl.utils import tensordict_utils as tu
from verl.utils.model import compute_position_id_with_mask
from verl.workers.config import ActorConfig, CriticConfig, FSDPEngineConfig, FSDPOptimizerConfig, HFModelConfig
from verl.workers.engine import EngineRegistry
from verl.workers.utils.losses import ppo_loss, value_loss
from verl.workers.utils.padding import left_right_2_no_padding

MODEL_TYPES = ("language_model", "value_model")
SEQUENCES, LENGTH, RESPONSE, VOCABULARY = 4, 16, 8, 256


def build_engine(
    models: Path,
    strategy: str,
    model_type: str,
    fsdp_size: int,
    param_dtype: str = "fp32",
    overrides: dict | None = None,
    forward_only: bool = False,
    **model_settings,
):
    """verl's engine as its workers build it; in fp32 with eager attention, runs can be compared bit by bit."""
    model = HFModelConfig(
        path=str(models / model_type),
        use_remove_padding=False,
        override_config={"attn_implementation": "eager", **(overrides or {})},
        **model_settings,
    )
    model.model_type = model_type
    settings = FSDPEngineConfig(
        forward_only=forward_only,
        strategy=strategy,
        fsdp_size=fsdp_size,
        use_dynamic_bsz=False,
        micro_batch_size_per_gpu=2,
        infer_micro_batch_size_per_gpu=2,
        max_token_len_per_gpu=512,
        infer_max_token_len_per_gpu=512,
        use_torch_compile=False,
        mixed_precision={"param_dtype": param_dtype, "reduce_dtype": "fp32", "buffer_dtype": "fp32"},
    )
    optimizer = FSDPOptimizerConfig(lr=1e-3, lr_scheduler_type="constant", total_training_steps=10)
    engine = EngineRegistry.new(
        model_type=model_type,
        backend=strategy,
        model_config=model,
        engine_config=settings,
        optimizer_config=optimizer,
        checkpoint_config=CheckpointConfig(),
    )
    engine.initialize()
    return engine, loss_function(strategy, model_type, model)


def loss_function(strategy: str, model_type: str, model):
    if model_type == "language_model":
        config = ActorConfig(strategy=strategy, rollout_n=1, ppo_micro_batch_size_per_gpu=-1, entropy_coeff=0.01)
        return partial(ppo_loss, config=config)
    config = CriticConfig(strategy=strategy, rollout_n=1, ppo_micro_batch_size_per_gpu=-1, model=model)
    return partial(value_loss, config=config)


def make_batch(seed: int, model_type: str):
    """A PPO batch with left and right padding, different on every rank."""
    generator = torch.Generator().manual_seed(seed + 100 * dist.get_rank())
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
        "old_log_probs": torch.full(shape, -5.5),
        "advantages": torch.randn(shape, generator=generator),
        "values": torch.zeros(shape),
        "returns": torch.randn(shape, generator=generator),
    }
    batch = left_right_2_no_padding(DataProto.from_single_dict(columns, meta_info={"temperature": 1.0}).to_tensordict())
    tu.assign_non_tensor(
        batch,
        global_batch_size=SEQUENCES * dist.get_world_size(),
        use_remove_padding=False,
        use_dynamic_bsz=False,
        max_token_len_per_gpu=512,
        micro_batch_size_per_gpu=2,
        use_fused_kernels=False,
        calculate_entropy=model_type == "language_model",
    )
    return batch


def train_step(engine, loss, seed: int, model_type: str) -> dict:
    with engine.train_mode():
        out = engine.train_batch(make_batch(seed, model_type), loss_function=loss)
        engine.lr_scheduler_step()
    return {"loss": float(sum(out["loss"])), "grad_norm": float(out["metrics"]["grad_norm"])}


def exported(engine) -> dict[str, list[float]]:
    """What weight sync would send: sum and sum of squares of every parameter in float64."""
    return {
        name: [tensor.cpu().double().sum().item(), tensor.cpu().double().pow(2).sum().item()]
        for name, tensor in engine.get_per_tensor_param()[0]
    }


def devices(engine) -> dict[str, str]:
    states = [value for state in engine.optimizer.state.values() for value in state.values()]
    moments = {value.device.type for value in states if torch.is_tensor(value) and value.dim() > 0}
    return {"parameters": next(engine.module.parameters()).device.type, "optimizer": ",".join(sorted(moments))}


class AskedModule:
    """The device module as verl gets it, noting every name that verl asks for in vain."""

    def __init__(self, module):
        self._module = module
        self.missing = set()

    def __getattr__(self, name: str):
        try:
            return getattr(self._module, name)
        except AttributeError:
            self.missing.add(name)
            raise


def watch_device_module() -> AskedModule:
    """Put the watcher between verl and the device module; torch itself keeps the real one."""
    platform = get_platform()
    watcher = AskedModule(platform.device_module)
    type(platform).device_module = property(lambda _: watcher)
    return watcher


def saved_on(checkpoint: str) -> list[str]:
    """Device types of the shards in this rank's checkpoint file."""
    file = f"{checkpoint}/model_world_size_{dist.get_world_size()}_rank_{dist.get_rank()}.pt"
    shards = []
    for value in torch.load(file, weights_only=False).values():
        if hasattr(value, "local_shards"):
            shards += [shard.tensor for shard in value.local_shards()]
        else:
            shards.append(value.to_local() if hasattr(value, "to_local") else value)
    return sorted({shard.device.type for shard in shards})


def run_combination(models: Path, out: Path, strategy: str, model_type: str) -> dict:
    torch.manual_seed(0)
    name = get_platform().device_name
    engine, loss = build_engine(models, strategy, model_type, dist.get_world_size())
    facts = {"engine": type(engine).__name__, "parameter": str(next(engine.module.parameters()).device)}
    with engine.eval_mode():
        inferred = engine.infer_batch(make_batch(1, model_type), loss_function=None)["model_output"]
    values = inferred["log_probs" if model_type == "language_model" else "values"]
    facts["inferred"] = values.values().double().flatten().tolist()
    facts["steps"] = [train_step(engine, loss, 10 + step, model_type) for step in range(3)]
    facts["exported"] = exported(engine)
    engine.to("cpu")
    facts["offloaded"] = devices(engine)
    engine.to(name)
    facts["loaded"] = devices(engine)
    checkpoint = str(out / f"checkpoint-{name}-{dist.get_world_size()}-{strategy}-{model_type}")
    engine.save_checkpoint(checkpoint, global_step=1)
    dist.barrier()
    facts["saved_on"] = saved_on(checkpoint)
    facts["after_save"] = train_step(engine, loss, 50, model_type)
    changed = exported(engine)
    engine.load_checkpoint(checkpoint, del_local_after_load=False)
    facts["restored"] = exported(engine) == facts["exported"] != changed
    facts["replayed"] = train_step(engine, loss, 50, model_type) == facts["after_save"] and exported(engine) == changed
    return facts


def combinations(device: str) -> list[tuple[str, str]]:
    """FSDP1 as verl sets it up refuses a CPU (sync_module_states), so the CPU reference is FSDP2's alone."""
    strategies = ("fsdp2",) if device == "cpu" else ("fsdp2", "fsdp")
    return [(strategy, model_type) for strategy in strategies for model_type in MODEL_TYPES]


def run_rank(models: Path, out: Path) -> dict:
    warnings.simplefilter("ignore")
    platform = get_platform()
    watcher = watch_device_module()
    results = {
        f"{strategy}-{model_type}": run_combination(models, out, strategy, model_type)
        for strategy, model_type in combinations(platform.device_name)
    }
    return {
        "platform": platform.vendor_name,
        "missing": sorted(watcher.missing),
        "results": results,
        "replaced": replaced_names.look(),
    }


def main() -> None:
    models, out, *world_sizes = sys.argv[1:]
    platform = get_platform()
    place = Path(out), platform.device_name, platform.communication_backend_name()
    for world_size in map(int, world_sizes):
        run_ranks(lambda _: run_rank(Path(models), Path(out)), world_size, *place)


if __name__ == "__main__":
    main()
