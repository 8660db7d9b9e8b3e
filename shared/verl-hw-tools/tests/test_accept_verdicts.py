# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Verdicts on runs of a GRPO loop on a toy: good ones with other seeds, and ones with a fault planted in the loop."""

import pytest
from grpo_toy import records

from verl_hw_tools.acceptance.completion import Plan
from verl_hw_tools.acceptance.criterion import Status
from verl_hw_tools.acceptance.judge import judge
from verl_hw_tools.acceptance.metrics import EPOCH, GRAD_NORM, PROBS_CORRELATION, PROBS_DIFF, REWARD, ROLLOUT_KL
from verl_hw_tools.acceptance.run import Ending, Run
from verl_hw_tools.acceptance.thresholds import Thresholds
from verl_hw_tools.errors import DamagedLogError, MissingMetricError, NotJudgedError, RunTooShortError

LIMITS = Thresholds()


def run_of(logged, ending=None, without=(), source="run"):
    names = [name for name in logged[0][1] if name not in without]
    columns = {name: {step: metrics[name] for step, metrics in logged} for name in names}
    return Run(source=source, format="test", columns=columns, ending=ending or Ending())


@pytest.fixture(scope="module")
def reference():
    return run_of(records("good", 0), source="reference")


def failed(verdict):
    return {criterion.id for criterion in verdict.of(Status.FAILED)}


def judged(kind, reference, seed=1, **options):
    return judge(run_of(records(kind, seed)), [reference], LIMITS, **options)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_good_run_with_another_seed_is_accepted(seed, reference):
    verdict = judged("good", reference, seed)
    assert failed(verdict) == set()
    assert verdict.accepted
    assert verdict.headline == "ACCEPTED"
    assert verdict.of(Status.NOT_JUDGED) == []


def test_stale_rollout_weights_from_step_3_are_rejected(reference):
    verdict = judged("stale", reference)
    assert {"reward.trend", "reward.rise", "rollout.growth", "rollout.kl"} <= failed(verdict)


def test_weights_that_lag_from_step_3_are_rejected_though_the_reward_is_good(reference):
    verdict = judged("lagging", reference)
    assert failed(verdict) == {"rollout.probs_diff", "rollout.correlation", "rollout.kl", "rollout.growth"}


def test_gradients_divided_by_the_world_size_are_rejected_though_the_reward_is_good(reference):
    verdict = judged("divided", reference)
    assert failed(verdict) == {"reference.grad_norm"}
    (criterion,) = verdict.of(Status.FAILED)
    assert criterion.value == pytest.approx(1 / 8, rel=0.05)


def test_a_reward_that_rises_and_collapses_is_rejected(reference):
    verdict = judged("collapse", reference)
    assert {"reward.collapse", "reference.level", "reference.shape"} <= failed(verdict)


def test_a_collapse_after_the_first_100_steps_is_rejected_too(reference):
    logged = list(records("good", 1))
    fallen = [(100 + step, metrics) for step, metrics in records("wrong sign", 1)]
    verdict = judge(run_of([*logged, *fallen]), [reference], LIMITS)
    assert failed(verdict) == {"reward.collapse"}


def test_gradients_that_do_not_arrive_are_rejected(reference):
    assert {"reward.trend", "reward.rise", "reference.grad_norm", "gradient.alive"} <= failed(judged("dead", reference))


def test_gradients_of_the_wrong_sign_are_rejected(reference):
    found = failed(judged("wrong sign", reference))
    assert {"reward.trend", "reward.onset", "reward.rise", "reward.collapse"} <= found


def test_a_rollout_that_computes_something_else_from_the_start_is_rejected(reference):
    verdict = judged("mismatch", reference)
    assert {"rollout.probs_diff", "rollout.correlation", "rollout.kl"} <= failed(verdict)
    assert "rollout.growth" not in failed(verdict)


@pytest.mark.parametrize("kind", ["stale", "collapse", "dead", "wrong sign"])
def test_the_reward_alone_shows_these_faults(kind):
    other = [name for name in records(kind, 1)[0][1] if name != REWARD]
    verdict = judge(run_of(records(kind, 1), without=other), [], LIMITS)
    assert not verdict.accepted


def test_without_a_reference_what_needs_one_is_open_and_the_headline_says_so():
    verdict = judge(run_of(records("good", 1)), [], LIMITS)
    assert verdict.accepted
    assert verdict.headline == "ACCEPTED as far as it can be judged: 3 of 7 stated criteria are open"
    with pytest.raises(NotJudgedError, match=r"--strict.*Needs a reference"):
        judge(run_of(records("good", 1)), [], LIMITS, strict=True)


def test_strict_still_rejects_a_bad_run():
    assert not judge(run_of(records("stale", 1)), [], LIMITS, strict=True).accepted


def test_a_gap_that_is_not_logged_is_said_to_be_open(reference):
    logged = run_of(records("lagging", 1), without=(PROBS_DIFF, PROBS_CORRELATION, ROLLOUT_KL))
    verdict = judge(logged, [reference], LIMITS)
    open_ones = {one.id: one.meaning for one in verdict.of(Status.NOT_JUDGED)}
    assert set(open_ones) == {"rollout.probs_diff", "rollout.correlation", "rollout.kl", "rollout.growth"}
    assert "calculate_log_probs" in open_ones["rollout.growth"]


def test_a_reference_without_a_metric_leaves_it_open(reference):
    poor = run_of(records("good", 0), without=(GRAD_NORM,))
    verdict = judge(run_of(records("good", 1)), [poor], LIMITS)
    assert [one.id for one in verdict.of(Status.NOT_JUDGED)] == ["reference.grad_norm"]


def test_one_of_several_references_suffices(reference):
    small = run_of(records("good", 5, batch=16))
    logged = run_of(records("good", 6, batch=16))
    assert not judge(logged, [reference], LIMITS).accepted
    assert judge(logged, [reference, small], LIMITS).accepted


def test_a_reference_that_is_no_good_run_gives_no_verdict():
    with pytest.raises(NotJudgedError, match=r"bad: the reference is itself no good run.*no flat line"):
        judge(run_of(records("good", 1)), [run_of(records("dead", 0), source="bad")], LIMITS)


def test_the_same_run_as_reference_is_noted(reference):
    assert "same run" in " ".join(judge(reference, [reference], LIMITS).notes)


def test_a_short_run_gives_no_verdict_unless_fewer_steps_were_asked_for(reference):
    short = run_of(records("good", 1, steps=60))
    with pytest.raises(RunTooShortError, match=r"first 100 steps are judged and the run has 60.*--steps 60"):
        judge(short, [reference], LIMITS)
    verdict = judge(short, [], LIMITS.changed({"steps": 60}))
    assert verdict.accepted
    assert "Only the first 60 steps" in verdict.notes[0]


def test_a_run_of_a_few_steps_is_told_to_train_on():
    with pytest.raises(RunTooShortError, match=r"the run has 3\. Train on$"):
        judge(run_of(records("good", 1)[:3]), [], LIMITS)


def test_a_short_reference_gives_no_verdict():
    with pytest.raises(RunTooShortError, match=r"^ref:"):
        judge(run_of(records("good", 1)), [run_of(records("good", 0, steps=60), source="ref")], LIMITS)


def test_nan_in_any_judged_metric_gives_no_verdict(reference):
    for metric in (REWARD, GRAD_NORM, ROLLOUT_KL):
        logged = [(step, {**all_, metric: float("nan")} if step == 50 else all_) for step, all_ in records("good", 1)]
        with pytest.raises(DamagedLogError, match=f"{metric} must be a number"):
            judge(run_of(logged), [reference], LIMITS)


def test_a_metric_that_is_missing_at_one_step_gives_no_verdict(reference):
    logged = run_of(records("good", 1))
    del logged.columns[GRAD_NORM][33]
    with pytest.raises(DamagedLogError, match=r"actor/grad_norm is missing at step 33"):
        judge(logged, [reference], LIMITS)


def test_a_run_without_the_metric_is_refused_by_name():
    with pytest.raises(MissingMetricError, match=r"wanted no/such"):
        run_of(records("good", 1)).values("no/such", 5)


def completed(ending=None, plan=None, references=(), steps=100):
    verdict = judge(run_of(records("good", 1, steps=steps), ending), references, LIMITS, plan)
    return next(one for one in verdict.criteria if one.id == "run.completed")


@pytest.mark.parametrize(
    ("ending", "plan", "status"),
    [
        (Ending(), None, Status.NOT_JUDGED),
        (Ending(finished=True), None, Status.PASSED),
        (Ending(planned_steps=100), None, Status.PASSED),
        (Ending(planned_steps=1740), None, Status.FAILED),
        (Ending(planned_steps=100, exit_code=1), None, Status.FAILED),
        (Ending(error="RuntimeError: boom"), None, Status.FAILED),
        # An error after the end, as from a destructor, is a note.
        (Ending(error="RuntimeError: boom", finished=True), None, Status.PASSED),
        # The last exit status of a resumed run counts.
        (Ending(error="RuntimeError: boom", planned_steps=100, exit_code=0), None, Status.PASSED),
        (Ending(), Plan(steps=100), Status.PASSED),
        (Ending(), Plan(steps=101), Status.FAILED),
        (Ending(), Plan(epochs=5), Status.PASSED),
        (Ending(), Plan(epochs=6), Status.FAILED),
        (Ending(planned_epochs=5), None, Status.PASSED),
        (Ending(planned_epochs=15), None, Status.FAILED),
    ],
)
def test_whether_all_epochs_were_completed(ending, plan, status):
    assert completed(ending, plan).status is status


def test_a_run_shorter_than_its_reference_is_not_complete(reference):
    longer = run_of(records("good", 0, steps=140))
    assert completed(references=[reference]).status is Status.PASSED
    assert completed(references=[longer]).status is Status.FAILED


def test_epochs_cannot_be_counted_without_their_metric():
    logged = run_of(records("good", 1), without=(EPOCH,))
    verdict = judge(logged, [], LIMITS, Plan(epochs=5))
    assert next(one for one in verdict.criteria if one.id == "run.completed").status is Status.NOT_JUDGED


def test_a_short_run_that_broke_off_is_rejected(reference):
    ending = Ending(error="torch.OutOfMemoryError: out of memory")
    verdict = judge(run_of(records("good", 1, steps=60), ending), [reference], LIMITS)
    assert failed(verdict) == {"run.completed"}
    assert "OutOfMemoryError" in verdict.criteria[0].found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "batch", "seeds", "accepted"),
    [
        ("good", 64, 50, True),
        ("good", 16, 50, True),
        ("stale", 64, 20, False),
        ("lagging", 64, 20, False),
        ("divided", 64, 20, False),
        ("collapse", 64, 20, False),
    ],
)
def test_over_many_seeds_no_good_run_is_rejected_and_no_bad_one_accepted(kind, batch, seeds, accepted):
    reference = run_of(records("good", 0, batch=batch))
    runs = (run_of(records(kind, seed, batch=batch)) for seed in range(1, seeds + 1))
    verdicts = [judge(run, [reference], LIMITS).accepted for run in runs]
    assert verdicts == [accepted] * seeds
