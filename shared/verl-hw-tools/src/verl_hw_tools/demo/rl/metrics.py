# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Read what verl's file logger wrote of an RL run, and judge the reward's course."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, fmean

from verl_hw_tools.demo.metrics import as_number, read_records

_REWARD = "critic/rewards/mean"
FEWEST_STEPS_TO_JUDGE = 8
_LEAST_CORRELATION = 0.5


@dataclass(frozen=True, kw_only=True)
class RlStep:
    """Metrics of one step; a number that was not logged, or is not finite, is NaN.

    Attributes:
        number: The step, from 1.
        reward: Mean reward of the step's answers.
        lowest: Lowest reward of an answer.
        highest: Highest reward of an answer.
        grad_norm: Norm of the actor's gradients before clipping.
        kl: KL divergence from the reference policy, as the actor's loss estimates it.
        rollout_gap: Largest difference of a token's probability between rollout and trainer.
        rollout_kl: KL divergence of the trainer's policy from the rollout's, as verl estimates it.
        device_memory: Most memory allocated on a device, in GiB.
        seconds: Time of the step.
    """

    number: int
    reward: float
    lowest: float
    highest: float
    grad_norm: float
    kl: float
    rollout_gap: float
    rollout_kl: float
    device_memory: float
    seconds: float


@dataclass(frozen=True)
class Trend:
    """The reward's course.

    Attributes:
        first: Mean reward of the first steps.
        last: Mean reward of as many last steps.
        averaged: How many steps each of them is of.
        correlation: Pearson's correlation of reward and step; NaN where it is not defined.
    """

    first: float
    last: float
    averaged: int
    correlation: float

    @property
    def rose(self) -> bool:
        """Whether the reward ended higher than it began, and rose over the steps and not in one of them alone."""
        return self.last > self.first and self.correlation > _LEAST_CORRELATION


def read_rl_steps(path: Path) -> list[RlStep]:
    """Read the steps that verl's PPO trainer logged so far."""
    return [_step(number, values) for number, values in read_records(path) if _REWARD in values]


def all_finite(steps: Sequence[RlStep]) -> bool:
    """Whether every reward and every gradient norm is a number."""
    return all(math.isfinite(step.reward) and math.isfinite(step.grad_norm) for step in steps)


def trend(steps: Sequence[RlStep]) -> Trend | None:
    """Judge the reward's course; None where there are too few steps, or a reward is no number."""
    if len(steps) < FEWEST_STEPS_TO_JUDGE or not all_finite(steps):
        return None
    rewards = [step.reward for step in steps]
    count = max(1, len(rewards) // 5)
    flat = len(set(rewards)) == 1
    course = math.nan if flat else correlation([float(step.number) for step in steps], rewards)
    return Trend(fmean(rewards[:count]), fmean(rewards[-count:]), count, course)


def describe(step: RlStep) -> str:
    """Say what a step measured."""
    return (
        f"reward {step.reward:.3f}  grad norm {step.grad_norm:.3f}  KL from start {step.kl:.3f}  ({step.seconds:.1f} s)"
    )


def _step(number: int, values: Mapping[str, object]) -> RlStep:
    def value(name: str) -> float:
        return as_number(values.get(name))

    return RlStep(
        number=number,
        reward=value(_REWARD),
        lowest=value("critic/rewards/min"),
        highest=value("critic/rewards/max"),
        grad_norm=value("actor/grad_norm"),
        kl=value("actor/kl_loss"),
        rollout_gap=value("training/rollout_probs_diff_max"),
        rollout_kl=value("rollout_corr/k3_kl"),
        device_memory=value("actor/perf/max_memory_allocated_gb"),
        seconds=value("timing_s/step"),
    )
