# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's engines on the device against the same engines on the CPU: the programs of ``tests/conformance``, compared.

Run as a part it compares; as ``RANK WORLD_SIZE MODELS OUT`` it is one rank of ``engine_program``.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boxlib.answers import WrongError, read_job, require_devices, step
from boxlib.ranks import run_ranks
from boxlib.running import Job

# A simulated device computes on the CPU. On a chip fp32 sums have another order, and three steps of Adam add to it.
_TOLERANCES = {"simulated": {"fsdp2": 1e-9, "fsdp": 1e-3}, "measured": {"fsdp2": 2e-3, "fsdp": 2e-3}}
# Below this a difference is rounding whatever it is relative to.
_SMALLEST = 1e-5
_REFERENCE: dict[str, str | None] = {
    "VERL_PLATFORM": "cpu_reference",
    "VERL_USE_EXTERNAL_MODULES": "cpu_reference",
    "VERL_USE_EXTERNAL_PLUGINS": "none",
    "VERL_HW_SIM": None,
    "VERL_HW_SIM_LIMITS": None,
    # verl asks torch.cuda, not the platform, at a few places; the reference has no device to find there.
    "CUDA_VISIBLE_DEVICES": "",
}
_ME = "boxlib.programs.engines"


def main() -> None:
    """Compare on one device, then on two."""
    from tiny_models import write_language_model, write_value_model

    job = read_job()
    models = Path("models").absolute()
    write_language_model(models / "language_model")
    write_value_model(models / "value_model")
    for name, world_size in (("parity", 1), ("parity-ranks", 2)):
        with step(job, name) as answer:
            require_devices(job, world_size)
            reference = _results(models, f"cpu-{world_size}", world_size, _REFERENCE)
            device = _results(models, f"device-{world_size}", world_size, {})
            answer.figures |= compare(device, reference, job)


def _results(models: Path, name: str, world_size: int, changes: dict[str, str | None]) -> list[dict[str, Any]]:
    out = Path(name).absolute()
    out.mkdir()
    run_ranks(_ME, [str(models), str(out)], world_size, out, changes)
    return [json.loads((out / f"result-{rank}.json").read_text(encoding="utf-8")) for rank in range(world_size)]


def compare(device: list[dict[str, Any]], reference: list[dict[str, Any]], job: Job) -> dict[str, Any]:
    """Return the largest relative differences by engine and model.

    Args:
        device: What each rank on the device came to.
        reference: The same on the CPU.
        job: The job.

    Raises:
        WrongError: Another platform or device was used, a difference is too large, or a checkpoint does not replay.
    """
    tolerances = _TOLERANCES["simulated" if job.simulated else "measured"]
    wrong: list[str] = []
    figures: dict[str, Any] = {}
    missing: set[str] = set()
    for rank, (ours, theirs) in enumerate(zip(device, reference, strict=True)):
        if ours["platform"] != job.vendor:
            wrong.append(f"rank {rank} was on platform {ours['platform']}, wanted {job.vendor}")
        missing.update(ours["missing"])
        for combination, result in ours["results"].items():
            strategy, model = combination.split("-")
            if result["parameter"] != f"{job.device_type}:{rank}":
                wrong.append(f"{combination}: parameters on {result['parameter']}, wanted {job.device_type}:{rank}")
            largest, where = max(_differences(result, theirs["results"][f"fsdp2-{model}"]))
            name = f"largest relative difference, {combination}"
            figures[name] = max(largest, figures.get(name, 0.0))
            if not largest <= tolerances[strategy]:
                wrong.append(f"{combination}: {where} differs by {largest:.1e}, allowed {tolerances[strategy]:.0e}")
            if not (result["restored"] and result["replayed"]):
                wrong.append(f"{combination}: restored {result['restored']}, replayed exactly {result['replayed']}")
    if missing:
        figures["names verl asked the device module for in vain"] = sorted(missing)
    if wrong:
        raise WrongError("; ".join(wrong))
    return figures


def _differences(result: dict[str, Any], expected: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """Relative differences of inferred values, losses, gradient norms and the parameters' sums of squares."""
    for number, (one, other) in enumerate(zip(result["inferred"], expected["inferred"], strict=True)):
        yield _relative(one, other), f"inferred value {number}"
    steps = zip([*result["steps"], result["after_save"]], [*expected["steps"], expected["after_save"]], strict=True)
    for number, (step_, other_step) in enumerate(steps, start=1):
        for name, value in step_.items():
            yield _relative(value, other_step[name]), f"{name} of step {number}"
    if result["exported"].keys() != expected["exported"].keys():
        yield float("inf"), "the set of exported parameters"
        return
    for name, (_, squares) in result["exported"].items():
        yield _relative(squares, expected["exported"][name][1]), f"parameter {name}"


def _relative(one: float, other: float) -> float:
    if one != one or other != other:
        return float("inf")
    difference = abs(one - other)
    return 0.0 if difference == 0 else difference / max(abs(one), abs(other), _SMALLEST)


def rank(number: int, world_size: int, models: Path, out: Path) -> None:
    """Be one rank."""
    from engine_program import run_rank
    from rank_start import joined
    from verl.plugin.platform import get_platform

    platform = get_platform()
    with joined(number, world_size, out, platform.device_name, platform.communication_backend_name()):
        result = run_rank(models, out)
        (out / f"result-{number}.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main()
    else:
        rank(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
