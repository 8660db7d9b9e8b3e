# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run verl's engine packed and padded on simulated devices and write down every number of both.

Usage: ``python padding_program.py MODELS_FOLDER OUT_FOLDER WORLD_SIZE...``. On one rank each attention implementation
is compared; on several, the ranks share one pack (Ulysses).
"""

import sys
from pathlib import Path
from unittest import mock

import torch.distributed as dist
from engine_program import MODEL_TYPES, SEQUENCES, VOCABULARY, loss_function, make_batch
from model_packing import model_results
from rank_start import run_ranks
from verl.plugin.platform import get_platform
from verl.trainer.config import CheckpointConfig
from verl.utils import tensordict_utils as tu
from verl.workers.config import FSDPEngineConfig, FSDPOptimizerConfig, HFModelConfig
from verl.workers.engine import EngineRegistry

from verl_hw_core import upstream


def build(
    models: Path,
    model_type: str,
    attention: str | None,
    strategy: str = "fsdp2",
    model_settings: dict | None = None,
    **settings,
):
    """verl's engine with padding removal; a batch may still ask to be padded."""
    chosen = {} if attention is None else {"attn_implementation": attention}
    model = HFModelConfig(
        path=str(models / model_type), use_remove_padding=True, override_config=chosen, **(model_settings or {})
    )
    model.model_type = model_type
    engine = EngineRegistry.new(
        model_type=model_type,
        backend=strategy,
        model_config=model,
        engine_config=FSDPEngineConfig(
            **{"forward_only": False, **settings},
            strategy=strategy,
            use_dynamic_bsz=False,
            use_torch_compile=False,
            mixed_precision={"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"},
        ),
        optimizer_config=FSDPOptimizerConfig(lr=0.0, lr_scheduler_type="constant", total_training_steps=10),
        checkpoint_config=CheckpointConfig(),
    )
    engine.initialize()
    return engine, loss_function(strategy, model_type, model)


def batch_of(model_type: str, packed: bool, changed: int | None = None):
    """The same batch on every rank, all of it in one micro-batch; the tokens of sequence ``changed`` are others."""
    batch = make_batch(1 - 100 * dist.get_rank(), model_type)
    # In this order no sequence ends where two or four ranks divide the pack.
    batch = tu.index_select_tensor_dict(batch, [1, 2, 0, 3])
    tu.assign_non_tensor(batch, use_remove_padding=packed, micro_batch_size_per_gpu=SEQUENCES)
    tu.assign_non_tensor(batch, global_batch_size=SEQUENCES)
    if changed is not None:
        start, end = batch["input_ids"].offsets()[changed : changed + 2]
        tokens = batch["input_ids"].values()
        tokens[start + 1 : end] = (tokens[start + 1 : end] + 7) % VOCABULARY  # the first one labels its neighbour
    return batch


def inferred(engine, model_type: str, **which) -> list[list[float]]:
    """Log-probs or values by sequence. A sequence's last log-prob has no label of its own and is left out."""
    with engine.eval_mode():
        output = engine.infer_batch(batch_of(model_type, **which), loss_function=None)["model_output"]
    if model_type == "value_model":
        return [row.tolist() for row in output["values"].unbind()]
    return [row[:-1].tolist() for row in output["log_probs"].unbind()]


def gradients(engine, loss, model_type: str, packed: bool) -> dict:
    """Norm of all gradients and every parameter's own, of one training step."""
    norms = {}
    step = engine.optimizer_step

    def noting_step():
        for name, parameter in engine.module.named_parameters():
            norms[name] = float(parameter.grad.full_tensor().double().norm())
        return step()

    engine.optimizer_step = noting_step
    with engine.train_mode():
        engine.train_batch(batch_of(model_type, packed), loss_function=loss)
    engine.optimizer_step = step
    return norms


def attention_of(engine) -> str:
    return engine.module.config._attn_implementation


def run_alone(models: Path) -> dict:
    results = {}
    for attention in (None, "sdpa", "eager"):
        for model_type in MODEL_TYPES:
            engine, loss = build(models, model_type, attention)
            results[f"{attention}-{model_type}"] = {
                "attention": attention_of(engine),
                "padded": inferred(engine, model_type, packed=False),
                "packed": inferred(engine, model_type, packed=True),
                "changed": inferred(engine, model_type, packed=True, changed=1),
                "padded gradients": gradients(engine, loss, model_type, packed=False),
                "packed gradients": gradients(engine, loss, model_type, packed=True),
            }
    reference, _ = build(models, "language_model", None, forward_only=True)
    results["reference"] = {
        "attention": attention_of(reference),
        "packed": inferred(reference, "language_model", packed=True),
    }
    results["rows"] = list(upstream.in_force())
    results["models"] = model_results(get_platform().device_name)
    return results


def run_together(models: Path, ranks: int) -> dict:
    results = {}
    for model_type in MODEL_TYPES:
        engine, loss = build(models, model_type, None, ulysses_sequence_parallel_size=ranks)
        results[model_type] = {
            "attention": attention_of(engine),
            "packed": inferred(engine, model_type, packed=True),
            "changed": inferred(engine, model_type, packed=True, changed=1),
            "packed gradients": gradients(engine, loss, model_type, packed=True),
        }
    with mock.patch("verl_hw_core.training.ulysses.register", return_value="sdpa"):
        engine, _ = build(models, "language_model", None, ulysses_sequence_parallel_size=ranks)
        results["control"] = inferred(engine, "language_model", packed=True)
    try:
        build(models, "language_model", "eager", ulysses_sequence_parallel_size=ranks)
    except ValueError as error:
        results["eager"] = f"{type(error).__name__}: {error}"
    return results


def main() -> None:
    models, out, *world_sizes = sys.argv[1:]
    platform = get_platform()
    place = Path(out), platform.device_name, platform.communication_backend_name()
    for size in map(int, world_sizes):
        run_ranks(lambda _, size=size: results_of(Path(models), size), size, *place)


def results_of(models: Path, world_size: int) -> dict:
    return run_alone(models) if world_size == 1 else run_together(models, world_size)


if __name__ == "__main__":
    main()
