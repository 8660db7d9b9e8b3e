# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The field's stated criteria on the reward of one run: it rises, early, by something, and stays up."""

from collections.abc import Sequence

from verl_hw_tools.acceptance import statistics
from verl_hw_tools.acceptance.criterion import Criterion, Question
from verl_hw_tools.acceptance.metrics import REWARD
from verl_hw_tools.acceptance.run import Run
from verl_hw_tools.acceptance.thresholds import Thresholds

_TREND = Question(
    id="reward.trend",
    title="reward trends upward",
    good="Later rewards are higher than earlier ones, and not by chance (Mann-Kendall test, see docs/acceptance.md).",
    bad="No clear upward trend: the model does not learn. Look for gradients that are zero or wrong, for a rollout "
    "that does not get new weights, and at the reward function.",
    metric=REWARD,
    stated=True,
)
_ONSET = Question(
    id="reward.onset",
    title="the rise starts early",
    good="The reward starts to rise within the first steps, as it should.",
    bad="The reward does not start to rise within the first steps. Look at the learning rate and its warm-up, and at "
    "the first gradient norms.",
    metric=REWARD,
    stated=True,
)
_RISE = Question(
    id="reward.rise",
    title="no flat line",
    good="The reward has risen by more than noise.",
    bad="A flat line: the last steps are hardly better than the first. The model does not learn, or far too slowly.",
    metric=REWARD,
    stated=True,
)
_COLLAPSE = Question(
    id="reward.collapse",
    title="no collapse",
    good="What was gained is kept, over the whole run.",
    bad="The reward rose and was lost again. Look at KL, entropy and gradient norm around the peak: an update that was "
    "too large, an optimizer state that came back wrong from the host, a checkpoint restored wrongly.",
    metric=REWARD,
    stated=True,
)


def reward_criteria(run: Run, limits: Thresholds) -> list[Criterion]:
    """Judge the reward of a run.

    Raises:
        RunTooShortError: The run has fewer steps than are judged.
        DamagedLogError: A step or a number is missing.
    """
    first = run.values(REWARD, limits.steps)
    return [_trend(first, limits), _onset(first, limits), _rise(first, limits), _collapse(run, limits)]


def _trend(rewards: Sequence[float], limits: Thresholds) -> Criterion:
    trend = statistics.upward_trend(rewards)
    found = f"p = {trend.p:.2g}, tau = {trend.tau:.2f}, {trend.slope:+.4f} a step"
    return _TREND.answered(trend.p <= limits.trend_p, trend.p, found, f"p at most {limits.trend_p:g}")


def _onset(rewards: Sequence[float], limits: Thresholds) -> Criterion:
    wanted = f"by step {limits.onset_step}"
    step = statistics.onset(rewards, limits.smoothing)
    if step is None or _gained(rewards) < _least_rise(rewards, limits):
        return _ONSET.answered(False, None, "no rise to speak of", wanted)
    return _ONSET.answered(step <= limits.onset_step, float(step), f"step {step}", wanted)


def _rise(rewards: Sequence[float], limits: Thresholds) -> Criterion:
    start, end = statistics.start_level(rewards), statistics.end_level(rewards)
    least = _least_rise(rewards, limits)
    found = f"{end - start:+.3f} (from {start:.3f} to {end:.3f})"
    return _RISE.answered(end - start >= least, end - start, found, f"at least {least:+.3f}")


def _gained(rewards: Sequence[float]) -> float:
    return statistics.end_level(rewards) - statistics.start_level(rewards)


def _least_rise(rewards: Sequence[float], limits: Thresholds) -> float:
    return max(limits.least_rise, limits.noise_factor * statistics.level_error(rewards))


def _collapse(run: Run, limits: Thresholds) -> Criterion:
    rewards = run.values(REWARD, run.last_step)
    drop = statistics.largest_drop(rewards, limits.smoothing)
    # On a flat line there is nothing to lose: a loss must exceed noise, and that share of the least rise.
    noise = limits.noise_factor * statistics.noise(rewards) * (2 / limits.smoothing) ** 0.5
    least = max(noise, limits.collapse_share * limits.least_rise)
    wanted = f"at most {limits.collapse_share:.0%} of the rise"
    found = f"lost {drop.share:.0%} of the rise"
    if drop.size > 0:
        found += f" ({drop.size:.3f}, from step {drop.peak_step} to {drop.low_step})"
    return _COLLAPSE.answered(drop.share <= limits.collapse_share or drop.size <= least, drop.share, found, wanted)
