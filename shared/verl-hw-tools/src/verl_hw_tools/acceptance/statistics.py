# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The statistics behind the criteria, on plain sequences of one value per step.

Trend: the Mann-Kendall test, with its variance corrected for autocorrelation after Hamed and Rao (1998) from the first
three lags, one-sided. It asks only whether later rewards tend to be higher, so the curve's form does not matter, and
neighbouring steps, whose rewards hang together, do not count as independent evidence. Size of the trend: levels and
Theil-Sen's slope. Noise: median absolute deviation of successive differences, which a slow trend does not enter.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from verl_hw_tools.acceptance.requirements import needed

with needed("scipy and pymannkendall"):
    import numpy as np
    import pymannkendall
    from scipy.ndimage import uniform_filter1d
    from scipy.stats import median_abs_deviation

_LAGS = 3
_FIRST, _LAST = 5, 10


@dataclass(frozen=True)
class Trend:
    """Result of the trend test.

    Attributes:
        p: Probability of so clear an upward trend in a curve without one.
        tau: Kendall's rank correlation of reward and step, from -1 to 1.
        slope: Theil-Sen's slope, per step.
    """

    p: float
    tau: float
    slope: float


@dataclass(frozen=True)
class Drop:
    """The largest loss of a smoothed curve after a peak.

    Attributes:
        peak_step: Step of the peak.
        low_step: Step of the lowest point after it.
        size: Difference of the two.
        share: That difference as a share of the rise from the start to the highest point of all; 1 without a rise.
    """

    peak_step: int
    low_step: int
    size: float
    share: float


def upward_trend(values: Sequence[float]) -> Trend:
    """Test for an upward trend; see the module."""
    curve = np.asarray(values, dtype=float)
    if np.ptp(curve) == 0.0:
        return Trend(p=1.0, tau=0.0, slope=0.0)
    with warnings.catch_warnings():
        # A negative variance after the correction: handled below.
        warnings.simplefilter("ignore", RuntimeWarning)
        plain = pymannkendall.original_test(curve)
        corrected = pymannkendall.hamed_rao_modification_test(curve, lag=min(_LAGS, len(curve) - 1))
    # The correction may only weaken the evidence: with alternating noise it would strengthen it, or lose its meaning.
    two_sided = max(plain.p, corrected.p) if np.isfinite(corrected.p) else plain.p
    p = two_sided / 2 if plain.s > 0 else 1.0 - two_sided / 2
    return Trend(p=float(p), tau=float(plain.Tau), slope=float(plain.slope))


def noise(values: Sequence[float]) -> float:
    """Standard deviation of the noise from step to step."""
    steps = np.diff(np.asarray(values, dtype=float))
    return float(median_abs_deviation(steps, scale="normal") / np.sqrt(2.0))


def start_level(values: Sequence[float]) -> float:
    """Mean of the first five values."""
    return float(np.mean(values[:_FIRST]))


def end_level(values: Sequence[float]) -> float:
    """Mean of the last ten values."""
    return float(np.mean(values[-_LAST:]))


def level_error(values: Sequence[float]) -> float:
    """Standard error of the difference between end and start level, from the noise."""
    return noise(values) * float(np.sqrt(1.0 / _FIRST + 1.0 / _LAST))


def smoothed(values: Sequence[float], window: int) -> Any:
    """Return the centred moving average as an array; the ends are continued with the nearest value."""
    curve = np.asarray(values, dtype=float)
    return uniform_filter1d(curve, min(window, max(1, len(curve) // 4)), mode="nearest")


def onset(values: Sequence[float], window: int) -> int | None:
    """The step at which the rise begins, or None without a rise.

    The foot of the curve, up to half of its rise, is fitted by least squares with a broken line: level, then rising.
    The step where it breaks is the onset; 1 means that the reward rises from the first step on.
    """
    curve = np.asarray(values, dtype=float)
    start, end = start_level(values), end_level(values)
    if end <= start:
        return None
    above = np.flatnonzero(smoothed(values, window) >= (start + end) / 2)
    foot = curve[: max(int(above[0]) + 1 if above.size else len(curve), min(_LAST, len(curve)))]
    at = np.arange(len(foot), dtype=float)
    errors = [_broken_line_error(np.maximum(0.0, at - bend), foot) for bend in range(len(foot) - 1)]
    return int(np.argmin(errors)) + 1


def _broken_line_error(ramp: Any, foot: Any) -> float:
    centred_ramp, centred = ramp - ramp.mean(), foot - foot.mean()
    slope = max(0.0, float(centred_ramp @ centred) / float(centred_ramp @ centred_ramp))
    return float(((centred - slope * centred_ramp) ** 2).sum())


def largest_drop(values: Sequence[float], window: int) -> Drop:
    """Find the largest loss after a peak."""
    curve = smoothed(values, window)
    below_peak = np.maximum.accumulate(curve) - curve
    low = int(np.argmax(below_peak))
    peak = int(np.argmax(curve[: low + 1]))
    # The highest point of all: a wobble before the rise must not be held against the little gained by then.
    size, gained = float(below_peak[low]), float(curve.max() - curve[0])
    return Drop(peak + 1, low + 1, size, size / gained if gained > 0 else (1.0 if size > 0 else 0.0))


def curve_distance(values: Sequence[float], others: Sequence[float], window: int) -> float:
    """Root mean square distance of two smoothed curves."""
    return float(np.sqrt(np.mean((smoothed(values, window) - smoothed(others, window)) ** 2)))


def relative_distance(values: Sequence[float], others: Sequence[float], window: int) -> float:
    """Mean distance of two smoothed curves as a share of the second one's mean size."""
    size = float(np.mean(np.abs(others)))
    distance = float(np.mean(np.abs(smoothed(values, window) - smoothed(others, window))))
    return distance / size if size > 0 else (0.0 if distance == 0 else float("inf"))


def typical_ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """Median over the steps of the ratio of two positive curves; steps at which either is zero are left out.

    Where these are most of the steps at which one of the curves is above zero, it is the ratio of the sums: 1 if both
    are zero everywhere, infinity if only the second is.
    """
    ours, theirs = np.maximum(np.asarray(values, dtype=float), 0.0), np.maximum(np.asarray(others, dtype=float), 0.0)
    both = (ours > 0) & (theirs > 0)
    if both.any() and 2 * both.sum() >= max((ours > 0).sum(), (theirs > 0).sum()):
        return float(np.exp(np.median(np.log(ours[both] / theirs[both]))))
    if theirs.any():
        return float(ours.sum() / theirs.sum())
    return float("inf") if ours.any() else 1.0


def worst_typical(values: Sequence[float], window: int, *, lowest: bool = False) -> float:
    """The largest (or lowest) median of so many successive values: a lasting excess, not a single one."""
    curve = np.asarray(values, dtype=float)
    windows = np.lib.stride_tricks.sliding_window_view(curve, min(window, len(curve)))
    medians = np.median(windows, axis=1)
    return float(medians.min() if lowest else medians.max())
