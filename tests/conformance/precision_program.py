# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Train verl's engine in fp16 on a simulated device and write down what loss scaling did.

Usage: ``python precision_program.py MODELS_FOLDER OUT_FOLDER``.
"""

import json
import sys
from pathlib import Path

from engine_program import build_engine, make_batch
from rank_start import joined
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
    with joined(0, 1, out, platform.device_name, platform.communication_backend_name()):
        (out / "result.json").write_text(json.dumps(results_of(models)))


def results_of(models: Path) -> dict:
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
    return results


if __name__ == "__main__":
    main()
