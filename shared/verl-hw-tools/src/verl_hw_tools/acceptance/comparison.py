# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A run beside its references: the reward's shape and size, and what a good reward can hide.

With several references (seeds), each number is the distance to the nearest of them: a run like one of the runs that
were accepted is like them.
"""

import math
from collections.abc import Callable, Sequence

from verl_hw_tools.acceptance import statistics
from verl_hw_tools.acceptance.criterion import Criterion, Question
from verl_hw_tools.acceptance.metrics import ENTROPY, GRAD_NORM, KL_LOSS, RESPONSE_LENGTH, REWARD
from verl_hw_tools.acceptance.run import Run
from verl_hw_tools.acceptance.thresholds import Thresholds

_LEVEL = Question(
    id="reference.level",
    title="reward reaches the reference",
    good="The reward ends at the reference's level.",
    bad="The reward ends at another level than the reference's. Same model, data, batch size, learning rate and number "
    "of samples? If so, the chip's numbers differ.",
    metric=REWARD,
    stated=True,
)
_SHAPE = Question(
    id="reference.shape",
    title="reward has the reference's shape",
    good="The curves lie on each other.",
    bad="The curve has another shape than the reference's: faster, slower or broken somewhere. See the plot.",
    metric=REWARD,
    stated=True,
)
_GRAD_NORM = Question(
    id="reference.grad_norm",
    title="gradient norm like the reference's",
    good="Gradients have the size of the reference's.",
    bad="Gradients have another size than the reference's. A ratio near 1/N, or N, of N devices means an average taken "
    "twice, or a sum where an average belongs; AdamW hides that from the reward.",
    metric=GRAD_NORM,
)
_KL = Question(
    id="reference.kl_loss",
    title="KL divergence like the reference's",
    good="The policy moves away from its first weights as fast as the reference's.",
    bad="The policy moves away from its first weights faster or slower than the reference's. Look at the learning "
    "rate, at the log-probs of the reference policy, and whether rollouts are from the present weights.",
    metric=KL_LOSS,
)
_ENTROPY = Question(
    id="reference.entropy",
    title="entropy like the reference's",
    good="The policy is as undecided as the reference's, all along.",
    bad="The policy becomes certain sooner or later than the reference's: another temperature, wrong log-probs, or "
    "updates of another size.",
    metric=ENTROPY,
)
_LENGTH = Question(
    id="reference.length",
    title="response length like the reference's",
    good="Answers are as long as the reference's.",
    bad="Answers are longer or shorter than the reference's: stop tokens, sampling parameters or the chat template "
    "differ, or the model drifts.",
    metric=RESPONSE_LENGTH,
)
_OTHERS = (_GRAD_NORM, _KL, _ENTROPY, _LENGTH)


def comparison(run: Run, references: Sequence[Run], limits: Thresholds) -> list[Criterion]:
    """Compare a run with its references; without any, say so of each criterion.

    Raises:
        RunTooShortError: A run has fewer steps than are judged.
        DamagedLogError: A step or a number is missing in either.
    """
    if not references:
        return [question.open("Needs a reference: --reference RUN.") for question in (_LEVEL, _SHAPE, *_OTHERS)]
    return [
        *_reward(run, references, limits),
        _of(_GRAD_NORM, run, references, limits, _ratio(limits.grad_norm_factor)),
        _of(_KL, run, references, limits, _ratio(limits.kl_factor, skipped=limits.steps // 2)),
        _of(_ENTROPY, run, references, limits, _distance(limits.entropy_tolerance, limits)),
        _of(_LENGTH, run, references, limits, _distance(limits.length_tolerance, limits)),
    ]


def _reward(run: Run, references: Sequence[Run], limits: Thresholds) -> list[Criterion]:
    ours = run.values(REWARD, limits.steps)
    theirs = [reference.values(REWARD, limits.steps) for reference in references]
    noise = limits.noise_factor * statistics.level_error(ours)
    levels = [(statistics.end_level(ours) - statistics.end_level(one), _rise(one)) for one in theirs]
    difference, rise = min(levels, key=lambda pair: abs(pair[0]) / pair[1])
    most = max(limits.level_tolerance * rise, noise)
    level = _LEVEL.answered(
        abs(difference) <= most,
        difference / rise,
        f"{difference:+.3f} ({difference / rise:+.0%} of the reference's rise)",
        f"within {most:.3f} ({most / rise:.0%})",
    )
    distance = min(statistics.curve_distance(ours, one, limits.smoothing) / _rise(one) for one in theirs)
    shape = _SHAPE.answered(
        distance <= limits.shape_tolerance,
        distance,
        f"{distance:.1%} of the reference's rise (root mean square)",
        f"at most {limits.shape_tolerance:.0%}",
    )
    return [level, shape]


def _rise(values: Sequence[float]) -> float:
    return statistics.end_level(values) - statistics.start_level(values)


_Measure = Callable[[list[float], list[float]], float]
_Rule = tuple[_Measure, Callable[[float], float], Callable[[float], str], float, str]


def _of(question: Question, run: Run, references: Sequence[Run], limits: Thresholds, rule: _Rule) -> Criterion:
    measure, size, text, most, wanted = rule
    metric = question.metric or ""
    if not run.has(metric):
        return question.open(f"{metric} is not in the log.", wanted)
    able = [reference for reference in references if reference.has(metric)]
    if not able:
        return question.open(f"{metric} is not in the reference's log.", wanted)
    ours = run.values(metric, limits.steps)
    value = min((measure(ours, one.values(metric, limits.steps)) for one in able), key=size)
    return question.answered(size(value) <= most, value, text(value), wanted)


def _ratio(factor: float, skipped: int = 0) -> _Rule:
    def measure(ours: list[float], theirs: list[float]) -> float:
        # The divergence is zero at first: its ratio means something once it has grown.
        return statistics.typical_ratio(ours[skipped:], theirs[skipped:])

    def size(ratio: float) -> float:
        return math.inf if ratio <= 0 else max(ratio, 1 / ratio)

    return (
        measure,
        size,
        lambda ratio: f"{ratio:.3g} times (median)",
        factor,
        f"between 1/{factor:g} and {factor:g} times",
    )


def _distance(most: float, limits: Thresholds) -> _Rule:
    def measure(ours: list[float], theirs: list[float]) -> float:
        return statistics.relative_distance(ours, theirs, limits.smoothing)

    return measure, abs, lambda share: f"{share:.1%} apart (mean)", most, f"at most {most:.0%}"
