# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Train verl's engine in fp16 on a simulated device and write down what loss scaling did.

Usage: ``python precision_program.py MODELS_FOLDER OUT_FOLDER``.
"""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from engine_program import build_engine, make_batch
from verl.plugin.platform import get_platform
from verl.utils.profiler.performance import reduce_timing

from verl_hw_sim import limits

TINY = 1e-8


def tiny_gradient_norm(engine, loss) -> float:
    """Gradient norm of a loss so small that fp16 holds none of its gradients without scaling."""

    def tiny_loss(*args, **kwargs):
        value, metrics = loss(*args, **kwargs)
        return value * TINY, metrics

    with engine.train_mode():
        out = engine.train_batch(make_batch(1, "language_model"), loss_function=tiny_loss)
    return float(out["metrics"]["grad_norm"])


def refusal(models: Path, **settings) -> str:
    try:
        build_engine(models, "fsdp2", "language_model", 1, **settings)
    except Exception as error:  # noqa: BLE001 - which one it is, is the question
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    models, out = Path(sys.argv[1]), Path(sys.argv[2])
    platform = get_platform()
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
    platform.set_device(0)
    backend = f"cpu:gloo,{platform.device_name}:{platform.communication_backend_name()}"
    dist.init_process_group(backend, init_method=f"file://{out}/rendezvous", rank=0, world_size=1)
    results = {}
    for strategy in ("fsdp2", "fsdp"):
        engine, loss = build_engine(models, strategy, "language_model", 1, param_dtype="fp16")
        norms = {"scaled": tiny_gradient_norm(engine, loss)}
        scaler, engine.scaler = engine.scaler, None
        norms["unscaled"] = tiny_gradient_norm(engine, loss)
        results[strategy] = {"enabled": scaler.is_enabled(), "scale": scaler.get_scale(), **norms}
    with limits.override(no_fp64=True):
        results["fp16 without fp64"] = refusal(models, param_dtype="fp16")
        results["bf16 without fp64"] = refusal(models, param_dtype="bf16")
    with limits.override(avg_rejected=True):
        results["timings"] = reduce_timing({"step": 2.0})
    (out / "result.json").write_text(json.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
