# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's GRPO on Ray: what ``verl-hw demo grpo --real`` runs, called below the command as in ``sft``."""

from pathlib import Path
from statistics import median

from rich.console import Console

from boxlib.answers import WrongError, read_job, step
from verl_hw_tools.demo.rl.run import RlDemo, run_rl_demo
from verl_hw_tools.demo.rl.settings import RlSettings
from verl_hw_tools.installed import find_wheel, installed_wheels

# From eight steps on the demo judges whether the reward rose.
_STEPS, _STEPS_SIMULATED = 10, 3
_MOST_PROCESSES = 2


def main() -> None:
    """Train some steps and judge them."""
    job = read_job()
    spec = find_wheel(job.vendor, installed_wheels()).facts
    settings = RlSettings(
        algorithm="grpo",
        steps=_STEPS_SIMULATED if job.simulated else _STEPS,
        nodes=1,
        processes=min(job.devices, _MOST_PROCESSES),
        seed=0,
    )
    with step(job, "grpo") as answer:
        demo = RlDemo(spec=spec, settings=settings, output=Path("grpo"), real=not job.simulated, keep=False)
        verdict = run_rl_demo(demo, Console(width=120))
        answer.figures |= {
            "workers": settings.workers,
            "steps": len(verdict.steps),
            "first reward": verdict.steps[0].reward if verdict.steps else None,
            "last reward": verdict.steps[-1].reward if verdict.steps else None,
            "largest probability difference of rollout and trainer": verdict.gap,
            "median seconds of a step": median(one.seconds for one in verdict.steps) if verdict.steps else None,
        }
        if not verdict.passed:
            raise WrongError(
                f"on the device: {verdict.on_device}; all steps: {verdict.complete}; rollout agrees: "
                f"{verdict.rollout_agrees} (difference {verdict.gap:.1e}); reward rose: {verdict.reward_rose}"
            )


if __name__ == "__main__":
    main()
