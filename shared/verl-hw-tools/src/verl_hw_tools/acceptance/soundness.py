# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What needs no reference: gradients that are there, updates of a sane size, rollout and trainer in agreement."""

from collections.abc import Callable, Sequence
from statistics import median

from verl_hw_tools.acceptance import statistics
from verl_hw_tools.acceptance.criterion import Criterion, Question
from verl_hw_tools.acceptance.metrics import GRAD_NORM, PPO_KL, PROBS_CORRELATION, PROBS_DIFF, ROLLOUT_KL
from verl_hw_tools.acceptance.run import Run
from verl_hw_tools.acceptance.thresholds import Thresholds

# Before the first updates, rollout and trainer hold the same weights even where the weight sync does nothing.
_BEFORE_STALE = 2
_MISMATCH = (
    "The rollout computes another policy than the trainer. From the first step on: weights converted wrongly, another "
    "precision or kernel. Growing: the rollout works with stale weights."
)
_AGREE = "Rollout and trainer agree on the probabilities of what was generated."

_GRADIENT = Question(
    id="gradient.alive",
    title="gradients arrive",
    good="Every step has a gradient.",
    bad="The gradient norm is zero over many steps: no gradient arrives, or all answers of every group get one reward.",
    metric=GRAD_NORM,
)
_UPDATE = Question(
    id="update.kl",
    title="updates of a sane size",
    good="One batch moves the policy a little.",
    bad="One batch moves the policy too far (KL between the policy before and after): learning rate, loss scaling or "
    "log-probs are wrong.",
    metric=PPO_KL,
)
_DIFF = Question(
    id="rollout.probs_diff", title="rollout's probabilities", good=_AGREE, bad=_MISMATCH, metric=PROBS_DIFF
)
_CORRELATION = Question(
    id="rollout.correlation", title="rollout's correlation", good=_AGREE, bad=_MISMATCH, metric=PROBS_CORRELATION
)
_GAP = Question(id="rollout.kl", title="rollout's divergence", good=_AGREE, bad=_MISMATCH, metric=ROLLOUT_KL)
_GROWTH = Question(
    id="rollout.growth",
    title="rollout gets new weights",
    good="The gap between rollout and trainer does not grow with training: the rollout gets the new weights.",
    bad="The gap between rollout and trainer grows with training: the rollout works with stale weights. Look at the "
    "weight sync.",
    metric=ROLLOUT_KL,
)
_NOT_LOGGED = (
    "{metric} is not in the log, so stale rollout weights can go unseen. verl logs it with "
    "actor_rollout_ref.rollout.calculate_log_probs=True."
)


def soundness(run: Run, limits: Thresholds) -> list[Criterion]:
    """Judge what needs no reference.

    Raises:
        DamagedLogError: A step or a number is missing in a metric that is logged.
    """
    return [
        _judged(_GRADIENT, run, limits, _gradient, "{metric} is not in the log."),
        _judged(_UPDATE, run, limits, _update, "{metric} is not in the log."),
        _judged(_DIFF, run, limits, _probs_diff, _NOT_LOGGED),
        _judged(_CORRELATION, run, limits, _correlation, _NOT_LOGGED),
        _judged(_GAP, run, limits, _divergence, _NOT_LOGGED),
        _judged(_GROWTH, run, limits, _growth, _NOT_LOGGED),
    ]


_Outcome = tuple[bool, float, str, str]


def _judged(
    question: Question,
    run: Run,
    limits: Thresholds,
    judge: Callable[[Sequence[float], Thresholds], _Outcome],
    missing: str,
) -> Criterion:
    metric = question.metric or ""
    if not run.has(metric):
        return question.open(missing.format(metric=metric))
    return question.answered(*judge(run.values(metric, limits.steps), limits))


def _gradient(norms: Sequence[float], limits: Thresholds) -> _Outcome:
    zero = sum(norm == 0.0 for norm in norms) / len(norms)
    return (
        zero <= 0.5,
        median(norms),
        f"median {median(norms):.3g}, zero at {zero:.0%} of the steps",
        "zero at half at most",
    )


def _update(kl: Sequence[float], limits: Thresholds) -> _Outcome:
    worst = statistics.worst_typical([abs(value) for value in kl], limits.smoothing)
    return worst <= limits.most_update_kl, worst, f"{worst:.3g}{_over(limits)}", f"at most {limits.most_update_kl:g}"


def _probs_diff(values: Sequence[float], limits: Thresholds) -> _Outcome:
    worst = statistics.worst_typical(values, limits.smoothing)
    return worst <= limits.most_probs_diff, worst, f"{worst:.3g}{_over(limits)}", f"at most {limits.most_probs_diff:g}"


def _correlation(values: Sequence[float], limits: Thresholds) -> _Outcome:
    worst = statistics.worst_typical(values, limits.smoothing, lowest=True)
    least = limits.least_probs_correlation
    return worst >= least, worst, f"{worst:.5g}{_over(limits)}", f"at least {least:g}"


def _divergence(values: Sequence[float], limits: Thresholds) -> _Outcome:
    worst = statistics.worst_typical(values, limits.smoothing)
    return worst <= limits.most_rollout_kl, worst, f"{worst:.3g}{_over(limits)}", f"at most {limits.most_rollout_kl:g}"


def _growth(values: Sequence[float], limits: Thresholds) -> _Outcome:
    first = median(values[:_BEFORE_STALE])
    worst = statistics.worst_typical(values, limits.smoothing)
    most = max(limits.gap_growth * first, limits.gap_floor)
    return worst <= most, worst, f"from {first:.2g} to {worst:.2g}", f"at most {most:.2g}"


def _over(limits: Thresholds) -> str:
    return f" (worst median of {limits.smoothing} steps)"
