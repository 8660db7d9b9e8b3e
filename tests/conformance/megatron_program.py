# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run verl's Megatron engine (and FSDP's, to compare) on this process's platform and write down every number as JSON.

Usage: ``python megatron_program.py MODELS_FOLDER OUT_FOLDER CASE...``. verl and Megatron are imported once,
and the ranks of every case are forked from here.
"""

import asyncio
import gc
import json
import os
import sys
import traceback
import warnings
from functools import partial
from pathlib import Path

import replaced_names
import torch
import torch.distributed as dist
import torch.multiprocessing
from megatron_cases import CASES, CLIP, EXPERTS, EXPERTS_PER_LAYER, LEARNING_RATE, SEQUENCES, Case, sequences, sums
from rollout_program import fill, rollout_config
from verl.plugin.platform import get_platform
from verl.trainer.config import CheckpointConfig
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.dataset_utils import DatasetPadMode
from verl.utils.device import get_torch_device
from verl.workers.config import (
    FSDPEngineConfig,
    FSDPOptimizerConfig,
    HFModelConfig,
    McoreEngineConfig,
    McoreOptimizerConfig,
)
from verl.workers.config.engine import EngineRouterReplayConfig
from verl.workers.engine import EngineRegistry
from verl.workers.utils.losses import sft_loss

from verl_hw_core.errors import MegatronArchitectureError, UnsupportedModelSettingError
from verl_hw_core.rollout.actor import build_model


def common_settings(case: Case) -> dict:
    return {
        "use_remove_padding": case.packed,
        "use_dynamic_bsz": False,
        "micro_batch_size_per_gpu": 2,
        "infer_micro_batch_size_per_gpu": 2,
        "max_token_len_per_gpu": 512,
        "infer_max_token_len_per_gpu": 512,
        "param_offload": case.offload,
        "optimizer_offload": case.offload,
        "forward_only": False,
    }


def megatron_settings(case: Case) -> tuple:
    settings = McoreEngineConfig(
        **common_settings(case),
        tensor_model_parallel_size=case.tp,
        pipeline_model_parallel_size=case.pp,
        virtual_pipeline_model_parallel_size=case.vpp,
        context_parallel_size=case.cp,
        expert_model_parallel_size=case.ep,
        sequence_parallel=case.sequence_parallel,
        vanilla_mbridge=True,
        override_transformer_config=dict(case.override),
        router_replay=EngineRouterReplayConfig(mode=case.router_replay),
    )
    # verl refuses fp32 here, with which alone a comparison can be sharp.
    object.__setattr__(settings, "dtype", case.dtype)
    optimizer = McoreOptimizerConfig(
        lr=LEARNING_RATE, lr_decay_style="constant", total_training_steps=10, weight_decay=0.0, clip_grad=CLIP
    )
    return settings, optimizer


def fsdp_settings(case: Case) -> tuple:
    settings = FSDPEngineConfig(
        **common_settings(case),
        strategy=case.strategy,
        fsdp_size=case.ranks,
        use_torch_compile=False,
        mixed_precision={"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"},
    )
    optimizer = FSDPOptimizerConfig(
        lr=LEARNING_RATE, lr_scheduler_type="constant", total_training_steps=10, weight_decay=0.0, clip_grad=CLIP
    )
    return settings, optimizer


def build(models: Path, case: Case):
    override = {"attn_implementation": "eager"} if case.strategy != "megatron" else {}
    model = HFModelConfig(path=str(models / case.model), use_remove_padding=case.packed, override_config=override)
    model.model_type = case.model_type
    settings, optimizer = megatron_settings(case) if case.strategy == "megatron" else fsdp_settings(case)
    engine = EngineRegistry.new(
        model_type=case.model_type,
        backend=case.strategy,
        model_config=model,
        engine_config=settings,
        optimizer_config=optimizer,
        checkpoint_config=CheckpointConfig(),
    )
    engine.initialize()
    return engine


def batch_of(engine, case: Case, step: int):
    """This rank's part of the global batch."""
    size, rank = engine.get_data_parallel_size(), engine.get_data_parallel_rank()
    part = sequences(step)[rank * SEQUENCES // size : (rank + 1) * SEQUENCES // size]
    columns = {
        "input_ids": [ids for ids, _, _ in part],
        "position_ids": [torch.arange(len(ids)) for ids, _, _ in part],
        "loss_mask": [mask for _, mask, _ in part],
        "targets": [targets for _, _, targets in part],
    }
    nested = {key: torch.nested.as_nested_tensor(rows, layout=torch.jagged) for key, rows in columns.items()}
    batch = tu.get_tensordict(tensor_dict=nested, non_tensor_dict={"temperature": 1.0})
    tu.assign_non_tensor(
        batch,
        global_batch_size=SEQUENCES,
        use_remove_padding=case.packed,
        use_dynamic_bsz=False,
        max_token_len_per_gpu=512,
        micro_batch_size_per_gpu=2,
        use_fused_kernels=False,
        calculate_entropy=False,
        pad_mode=DatasetPadMode.NO_PADDING,
        temperature=1.0,
    )
    return batch


def value_loss(model_output, data, dp_group=None):
    errors = (model_output["values"].values() - data["targets"].values()).square() * data["loss_mask"].values()
    return errors.sum() / data["batch_num_tokens"] * data["dp_size"], {}


def train_step(engine, case: Case, step: int) -> dict | None:
    """Loss (the mean over data-parallel ranks) and gradient norm, on the ranks that have them."""
    return train_on(engine, case, batch_of(engine, case, step))


def train_on(engine, case: Case, batch) -> dict | None:
    loss = partial(sft_loss, None) if case.model_type == "language_model" else value_loss
    with engine.train_mode():
        out = engine.train_batch(batch, loss_function=loss)
        engine.lr_scheduler_step()
    if not engine.is_mp_src_rank_with_outputs():
        return None
    value = torch.tensor(float(sum(out["loss"])), device=get_platform().device_name)
    dist.all_reduce(value, group=engine.get_data_parallel_group())
    return {"loss": value.item() / engine.get_data_parallel_size(), "grad_norm": float(out["metrics"]["grad_norm"])}


def exported(engine) -> dict[str, list]:
    """What weight sync would send: shape, sum and sum of squares of every parameter."""
    return {name: [list(tensor.shape), *sums(tensor)] for name, tensor in engine.get_per_tensor_param()[0]}


def synced_logits(engine) -> list[list[float]]:
    """Logits of the bring-up rollout's model after a weight sync from this engine."""
    device = get_platform().device_name
    rollout = build_model(rollout_config(), engine.model_config, torch.device(device, get_platform().current_device()))
    asyncio.run(fill(rollout, engine.get_per_tensor_param()[0], 10_000))
    ids = sequences(99)[0][0].to(device)
    with torch.no_grad():
        return rollout._module(ids[None], use_cache=False).logits[0].float().tolist()


def device_bytes() -> int:
    """What is in use; garbage that Python has not collected yet is not."""
    gc.collect()
    get_torch_device().synchronize()
    return get_torch_device().memory_allocated()


def run_replay(engine, case: Case) -> dict:
    """The routes that a forward pass records, and a training step in which every token goes to the next expert."""
    batch = batch_of(engine, case, 0)
    tu.assign_non_tensor(batch, enable_routing_replay=True)
    with engine.eval_mode():
        routes = engine.infer_batch(batch.clone(), loss_function=None)["model_output"]["routed_experts"]
    batch["routed_experts"] = torch.nested.as_nested_tensor(
        [(one + 1) % EXPERTS_PER_LAYER for one in routes.unbind()], layout=torch.jagged
    )
    return {"routes": [one.tolist() for one in routes.unbind()], "steps": [train_on(engine, case, batch)]}


def run_case(models: Path, out: Path, case: Case) -> dict:
    device = get_platform().device_name
    try:
        engine = build(models, case)
    except (UnsupportedModelSettingError, MegatronArchitectureError) as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    facts = {"engine": type(engine).__name__, "initial": exported(engine)}
    if case.router_replay != "disabled":
        return facts | run_replay(engine, case)
    with engine.eval_mode():
        result = engine.infer_batch(batch_of(engine, case, 99), loss_function=None)
    if engine.is_mp_src_rank_with_outputs():
        key = "log_probs" if case.model_type == "language_model" else "values"
        facts["inferred"] = [row.double().tolist() for row in result["model_output"][key].unbind()]
    facts["steps"] = [train_step(engine, case, step) for step in range(3)]
    trained = exported(engine)
    engine.to(device)
    facts["bytes_loaded"] = device_bytes()
    engine.to("cpu")
    facts["bytes_offloaded"] = device_bytes()
    engine.to(device)
    facts["bytes_back"] = device_bytes()
    if case.offload:
        engine.to("cpu")
    if case.checkpoint:
        folder = str(out / f"checkpoint-{case.name}")
        engine.save_checkpoint(folder, global_step=3)
        dist.barrier()
    facts["steps"].append(train_step(engine, case, 3))
    changed = exported(engine)
    if case.checkpoint:
        train_step(engine, case, 4)
        engine.load_checkpoint(folder, del_local_after_load=False)
        facts["restored"] = exported(engine) == trained != changed
        facts["replayed"] = train_step(engine, case, 3) == facts["steps"][3] and exported(engine) == changed
        fresh = build(models, case)  # as a new process has it: no optimizer state yet
        fresh.load_checkpoint(folder, del_local_after_load=False)
        facts["resumed"] = train_step(fresh, case, 3) == facts["steps"][3] and exported(fresh) == changed
    facts["last"] = changed
    if case.rollout:
        facts["synced_logits"] = synced_logits(engine)
    facts["replaced"] = replaced_names.look()
    return facts


def run_rank(rank: int, models: Path, out: Path, case: Case) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    platform = get_platform()
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(case.ranks))
    platform.set_device(rank)
    backend = f"cpu:gloo,{platform.device_name}:{platform.communication_backend_name()}"
    dist.init_process_group(
        backend, init_method=f"file://{out}/rendezvous-{case.name}", rank=rank, world_size=case.ranks
    )
    try:
        facts = run_case(models, out, case)
    except BaseException:
        (out / f"error-{case.name}-{rank}.txt").write_text(traceback.format_exc())
        raise
    (out / f"result-{case.name}-{rank}.json").write_text(json.dumps(facts))
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    models, out, *names = sys.argv[1:]
    EngineRegistry.get_engine_cls("language_model", "megatron").load()  # imports Megatron before the forks
    for case in (*CASES, *EXPERTS):
        if case.name in names:
            torch.multiprocessing.start_processes(
                run_rank, (Path(models), Path(out), case), nprocs=case.ranks, start_method="fork"
            )


if __name__ == "__main__":
    main()
