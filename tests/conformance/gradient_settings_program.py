# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Train with verl's engine under settings that once gave wrong gradients without a word, and write down the numbers.

Usage: ``python gradient_settings_program.py MODELS_FOLDER OUT_FOLDER WORLD_SIZE...``. On a CPU platform it writes the
reference: plain FSDP2.
"""

import sys
import warnings
from functools import partial
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
from engine_program import build_engine, exported, make_batch, train_step
from rank_start import run_ranks
from verl.plugin.platform import get_platform

LANGUAGE = "language_model"
OFFLOAD = {"enable_activation_offload": True}


def trained(models: Path, strategy: str, fsdp_size: int, **model_settings) -> dict:
    """Three steps with sdpa and without gradient checkpointing, and the weights after them."""
    torch.manual_seed(0)
    settings = {"enable_gradient_checkpointing": False, **model_settings}
    sdpa = {"attn_implementation": "sdpa"}
    engine, loss = build_engine(models, strategy, LANGUAGE, fsdp_size, overrides=sdpa, **settings)
    steps = [train_step(engine, loss, 10 + step, LANGUAGE) for step in range(3)]
    return {"steps": steps, "exported": exported(engine)}


def refusal(models: Path, model_type: str) -> str:
    try:
        build_engine(models, "fsdp", model_type, fsdp_size=1)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def reference_policy(models: Path) -> list[float]:
    """Log-probs of an engine without gradients: FSDP1 with one rank a shard."""
    engine, _ = build_engine(models, "fsdp", LANGUAGE, fsdp_size=1, forward_only=True)
    with engine.eval_mode():
        output = engine.infer_batch(make_batch(1, LANGUAGE), loss_function=None)["model_output"]
    return output["log_probs"].values().tolist()


def run_device(models: Path) -> dict:
    from verl_hw_core import reduction, upstream
    from verl_hw_core.training import memory
    from verl_hw_sim import limits

    size = dist.get_world_size()
    results = {"refused": {model_type: refusal(models, model_type) for model_type in (LANGUAGE, "value_model")}}
    if size == 1:
        return results
    results |= {
        "one rank a shard": trained(models, "fsdp2", 1),
        "rows before": list(upstream.in_force()),
        "offload fsdp2": trained(models, "fsdp2", size, **OFFLOAD),
        "offload fsdp": trained(models, "fsdp", size, **OFFLOAD),
        "rows": list(upstream.in_force()),
        "reference policy": reference_policy(models),
    }
    with limits.override(late_host_copies=True):
        results["offload fsdp2, late copies"] = trained(models, "fsdp2", size, **OFFLOAD)
    results["rows of late copies"] = list(upstream.in_force())
    upstream.restore("pinned-memory")
    upstream.restore("activation-offload-key")
    with mock.patch.object(memory, "offload_views_apart"):
        results["verl's own key"] = trained(models, "fsdp2", size, **OFFLOAD)
    with mock.patch.object(reduction, "require_averaging"):
        results["fsdp, one rank a shard"] = trained(models, "fsdp", 1)
    return results


def run_rank(device: str, models: Path, _rank: int) -> dict:
    warnings.simplefilter("ignore")
    if device != "cpu":
        return run_device(models)
    return {"plain": trained(models, "fsdp2", dist.get_world_size())}


def main() -> None:
    models, out, *world_sizes = sys.argv[1:]
    platform = get_platform()
    place = Path(out), platform.device_name, platform.communication_backend_name()
    for size in map(int, world_sizes):
        run_ranks(partial(run_rank, platform.device_name, Path(models)), size, *place)


if __name__ == "__main__":
    main()
