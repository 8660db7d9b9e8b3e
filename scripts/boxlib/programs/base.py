# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A training step of our engine and of verl's own on the same device: the numbers must be equal, the times are told.

Where the device is torch's ``cuda``, verl's own is its NVIDIA platform in a process without any of our plugins. verl
has no engine for other devices: there it is verl's class on our platform, without what our engines add to it.
Run as a part it compares; as ``RANK WORLD_SIZE KIND MODELS OUT`` it is the process that trains.
"""

import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from boxlib.answers import WrongError, read_job, step
from boxlib.ranks import run_ranks
from boxlib.running import Job

OURS, VERLS = "ours", "verl's"
_WARM_UP, _TIMED = 5, 20
# The same kernels in the same order; atomic additions of a chip may differ in the last bits.
_LARGEST_DIFFERENCE = {"simulated": 0.0, "measured": 1e-5}
_ME = "boxlib.programs.base"


def main() -> None:
    """Train with both and compare."""
    from tiny_models import write_language_model

    job = read_job()
    models = Path("models").absolute()
    write_language_model(models / "language_model")
    with step(job, "base-engine") as answer:
        found = {kind: _train(kind, models, job) for kind in (OURS, VERLS)}
        ours, verls = found[OURS], found[VERLS]
        answer.figures |= {
            "ratio of median step times, ours to verl's": median(ours["seconds"]) / median(verls["seconds"]),
            "median milliseconds of a step, ours": 1e3 * median(ours["seconds"]),
            "median milliseconds of a step, verl's": 1e3 * median(verls["seconds"]),
            "engine, ours": ours["engine"],
            "engine, verl's": f"{verls['engine']} on platform {verls['platform']}",
        }
        largest = max(
            abs(one[name] - other[name]) / max(abs(other[name]), 1e-5)
            for one, other in zip(ours["steps"], verls["steps"], strict=True)
            for name in ("loss", "grad_norm")
        )
        answer.figures["largest relative difference of a loss or gradient norm"] = largest
        allowed = _LARGEST_DIFFERENCE["simulated" if job.simulated else "measured"]
        if not largest <= allowed:
            raise WrongError(f"losses or gradient norms differ by {largest:.1e}, allowed {allowed:.0e}")
        for kind, one in found.items():
            if one["parameter"] != f"{job.device_type}:0":
                raise WrongError(f"{kind} trained on {one['parameter']}, wanted {job.device_type}:0")


def _train(kind: str, models: Path, job: Job) -> dict[str, Any]:
    out = Path("ours" if kind == OURS else "verls").absolute()
    out.mkdir()
    alone = kind == VERLS and job.device_type == "cuda"
    changes: dict[str, str | None] = {"VERL_PLATFORM": "nvidia", "VERL_USE_EXTERNAL_PLUGINS": "none"} if alone else {}
    run_ranks(_ME, [kind, str(models), str(out)], 1, out, changes)
    found: dict[str, Any] = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return found


def rank(kind: str, models: Path, out: Path) -> None:
    """Train and time."""
    import engine_program
    import torch
    from rank_start import joined
    from verl.plugin.platform import get_platform

    platform = get_platform()
    with joined(0, 1, out, platform.device_name, platform.communication_backend_name()):
        torch.manual_seed(0)
        if kind == VERLS:
            engine_program.EngineRegistry = _VerlsOwn
        engine, loss = engine_program.build_engine(models, "fsdp2", "language_model", 1)
        steps, seconds = [], []
        for number in range(_WARM_UP + _TIMED):
            platform.synchronize()
            began = time.perf_counter()
            steps.append(engine_program.train_step(engine, loss, number, "language_model"))
            platform.synchronize()
            seconds.append(time.perf_counter() - began)
        result = {
            "engine": type(engine).__name__,
            "platform": platform.vendor_name,
            "parameter": str(next(engine.module.parameters()).device),
            "steps": steps,
            "seconds": seconds[_WARM_UP:],
        }
        (out / "result.json").write_text(json.dumps(result), encoding="utf-8")


class _VerlsOwn:
    """Stands for verl's registry of engines, which has ours for the device, or none."""

    @staticmethod
    def new(model_type: str, backend: str, **settings: Any) -> Any:
        """Return verl's own FSDP engine."""
        from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

        return FSDPEngineWithLMHead(**settings)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main()
    else:
        rank(sys.argv[3], Path(sys.argv[4]), Path(sys.argv[5]))
