# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The statistics: what they find in curves with known properties, and how often they err."""

import numpy as np
import pytest

from verl_hw_tools.acceptance import statistics

STEPS = 100


def autoregressive(coefficient, generator, steps=STEPS):
    """Return a flat curve whose neighbouring values hang together."""
    noise = generator.standard_normal(steps + 100)
    values = np.zeros(steps + 100)
    for at in range(1, len(values)):
        values[at] = coefficient * values[at - 1] + noise[at]
    return values[100:]


@pytest.mark.parametrize(("coefficient", "most"), [(0.0, 0.03), (0.5, 0.06), (0.7, 0.10)])
def test_a_flat_curve_is_seldom_taken_for_a_trend_though_its_steps_hang_together(coefficient, most):
    generator = np.random.default_rng(7)
    curves = [autoregressive(coefficient, generator) for _ in range(150)]
    false_alarms = sum(statistics.upward_trend(curve).p <= 0.01 for curve in curves)
    assert false_alarms / len(curves) <= most


def test_the_uncorrected_test_would_err_far_more_often():
    import pymannkendall

    generator = np.random.default_rng(7)
    curves = [autoregressive(0.7, generator) for _ in range(150)]
    plain = sum(pymannkendall.original_test(curve).p / 2 <= 0.01 for curve in curves) / len(curves)
    corrected = sum(statistics.upward_trend(curve).p / 2 <= 0.01 for curve in curves) / len(curves)
    assert plain >= 0.1
    assert corrected <= plain / 2


def test_a_slow_rise_in_noise_is_found():
    generator = np.random.default_rng(3)
    found = [
        statistics.upward_trend(np.linspace(0.3, 0.4, STEPS) + 0.03 * generator.standard_normal(STEPS)).p
        for _ in range(30)
    ]
    assert max(found) <= 0.01


@pytest.mark.parametrize("values", [[0.5] * 50, list(np.linspace(0.9, 0.1, 50))])
def test_level_and_falling_curves_have_no_upward_trend(values):
    assert statistics.upward_trend(values).p > 0.9


def test_alternating_noise_does_not_strengthen_the_evidence():
    import pymannkendall

    generator = np.random.default_rng(11)
    for _ in range(20):
        values = autoregressive(-0.7, generator) + np.linspace(0, 1, STEPS)
        plain = pymannkendall.original_test(values)
        assert statistics.upward_trend(values).p >= (plain.p / 2 if plain.s > 0 else 1 - plain.p / 2)


def test_noise_is_measured_beside_a_trend():
    generator = np.random.default_rng(1)
    values = np.linspace(0, 1, 400) + 0.05 * generator.standard_normal(400)
    assert statistics.noise(values) == pytest.approx(0.05, rel=0.15)


@pytest.mark.parametrize("delay", [0, 10, 19, 40, 70])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_the_onset_of_a_delayed_rise(delay, noise):
    generator = np.random.default_rng(delay)
    steps = np.arange(STEPS)
    curve = 0.2 + 0.6 * (1 - np.exp(-np.maximum(0, steps - delay) / 20)) + noise * generator.standard_normal(STEPS)
    assert statistics.onset(curve, 9) == pytest.approx(delay + 1, abs=5)


def test_a_falling_curve_has_no_onset():
    assert statistics.onset(np.linspace(0.9, 0.1, 50), 9) is None


def test_the_largest_drop_and_where_it_is():
    rise, fall = np.linspace(0.2, 0.8, 60), np.linspace(0.8, 0.5, 40)
    drop = statistics.largest_drop(np.concatenate([rise, fall]), 5)
    assert drop.size == pytest.approx(0.3, abs=0.02)
    assert drop.share == pytest.approx(0.5, abs=0.03)
    assert (drop.peak_step, drop.low_step) == (pytest.approx(60, abs=2), 100)


def test_a_dip_before_the_rise_is_small_beside_it():
    curve = np.concatenate([[0.2, 0.19, 0.18, 0.18], np.linspace(0.2, 0.9, 60)])
    assert statistics.largest_drop(curve, 1).share == pytest.approx(0.02 / 0.7, abs=0.01)


def test_a_ratio_leaves_out_steps_with_zeros():
    assert statistics.typical_ratio([0.5, 0.0, 1.5], [1.0, 1.0, 3.0]) == pytest.approx(0.5)
    assert statistics.typical_ratio([0.0, 0.0], [1.0, 1.0]) == 0.0
    assert statistics.typical_ratio([1.0, 1.0], [0.0, 0.0]) == np.inf
    assert statistics.typical_ratio([0.0], [0.0]) == 1.0


def test_one_step_above_zero_does_not_stand_for_a_curve_of_zeros():
    assert statistics.typical_ratio([0.0] * 9 + [1.0], [1.0] * 10) == pytest.approx(0.1)
    assert statistics.typical_ratio([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]) == pytest.approx(1.0)


def test_a_single_excess_is_not_a_lasting_one():
    values = [0.1] * 50
    values[20] = 9.0
    assert statistics.worst_typical(values, 9) == pytest.approx(0.1)
    values[20:26] = [9.0] * 6
    assert statistics.worst_typical(values, 9) == pytest.approx(9.0)
