# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's SFT trainer with an exact resume: what ``verl-hw demo sft --real`` runs.

It is called below the command, which refuses a machine on which detection does not find the vendor: here one vendor's
wheel may drive another's device on purpose.
"""

from pathlib import Path

from rich.console import Console

from boxlib.answers import WrongError, read_job, step
from verl_hw_tools.demo.sft import SftDemo, run_sft_demo
from verl_hw_tools.demo.sft_config import SftSettings
from verl_hw_tools.installed import find_wheel, installed_wheels

_STEPS, _STEPS_SIMULATED = 20, 12
_MOST_PROCESSES = 2


def main() -> None:
    """Train, resume, compare."""
    job = read_job()
    spec = find_wheel(job.vendor, installed_wheels()).facts
    steps = _STEPS_SIMULATED if job.simulated else _STEPS
    settings = SftSettings(steps=steps, processes=min(job.devices, _MOST_PROCESSES), strategy="fsdp2", seed=0)
    with step(job, "sft") as answer:
        demo = SftDemo(spec=spec, settings=settings, output=Path("sft"), real=not job.simulated, keep=False)
        verdict = run_sft_demo(demo, Console(width=120))
        answer.figures |= {
            "processes": settings.processes,
            "steps": settings.steps,
            "first loss": verdict.whole[0].loss if verdict.whole else None,
            "last loss": verdict.whole[-1].loss if verdict.whole else None,
            "steps replayed": len(verdict.comparison.replayed),
            "differing numbers": len(verdict.comparison.differences),
        }
        if not verdict.passed:
            raise WrongError(
                f"on the device: {verdict.on_device}; loss fell: {verdict.loss_fell}; resume exact: "
                f"{verdict.comparison.exact}; differences: {'; '.join(verdict.comparison.differences[:4]) or 'none'}"
            )


if __name__ == "__main__":
    main()
