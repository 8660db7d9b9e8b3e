# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The stated criterion that is not about a curve: all epochs were completed, without error."""

from collections.abc import Sequence
from dataclasses import dataclass

from verl_hw_tools.acceptance.criterion import Criterion, Question
from verl_hw_tools.acceptance.metrics import EPOCH
from verl_hw_tools.acceptance.run import Run

_COMPLETED = Question(
    id="run.completed",
    title="all epochs completed",
    good="Training came to its planned end without an error.",
    bad="Training did not come to its planned end. Whatever the curve looks like so far, this is no pass.",
    stated=True,
)
_HOW_TO_TELL = "This log does not say how long training was meant to go on: say --epochs N or --total-steps N."


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the user says that the run was meant to be; None is for not said.

    Attributes:
        steps: Steps in all.
        epochs: Epochs in all.
    """

    steps: int | None = None
    epochs: int | None = None


def completion(run: Run, plan: Plan, references: Sequence[Run]) -> Criterion:
    """Judge whether the run came to its planned end.

    What counts, strongest first: an error, the plan given by the user, what the log says, the length of the references
    (runs of the same recipe that were accepted as complete by whoever offers them).
    """
    ending, last = run.ending, float(run.last_step)
    if ending.exit_code:
        return _COMPLETED.answered(
            False, last, f"exit code {ending.exit_code} after step {run.last_step}", "exit code 0"
        )
    if failed_early(run):
        return _COMPLETED.answered(False, last, f"{(ending.error or '')[:160]} (last step {run.last_step})", "no error")
    if plan.steps is not None:
        return _by_steps(run, plan.steps, "as planned")
    if plan.epochs is not None:
        return _by_epochs(run, plan.epochs)
    if ending.planned_steps is not None:
        return _by_steps(run, ending.planned_steps, "as the log says")
    if ending.finished or ending.exit_code == 0:
        return _COMPLETED.answered(True, last, f"the trainer ended normally after step {run.last_step}", "a normal end")
    if ending.planned_epochs is not None and run.has(EPOCH):
        return _by_epochs(run, ending.planned_epochs)
    if references:
        return _by_steps(run, min(reference.last_step for reference in references), "as the reference")
    return _COMPLETED.open(_HOW_TO_TELL)


def failed_early(run: Run) -> bool:
    """Whether the log itself shows that training broke off with an error."""
    ending = run.ending
    return bool(ending.exit_code) or (ending.error is not None and not ending.finished and ending.exit_code is None)


def _by_steps(run: Run, planned: int, why: str) -> Criterion:
    found = f"{run.last_step} steps"
    return _COMPLETED.answered(run.last_step >= planned, float(run.last_step), found, f"{planned} steps, {why}")


def _by_epochs(run: Run, planned: int) -> Criterion:
    wanted = f"{planned} whole epochs"
    if not run.has(EPOCH):
        return _COMPLETED.open(
            f"The log lacks {EPOCH}, so epochs cannot be counted. Say --total-steps N instead.", wanted
        )
    epochs = list(run.columns[EPOCH].values())
    whole = sum(epochs.count(epoch) >= epochs.count(0.0) for epoch in set(epochs)) if 0.0 in epochs else 0
    return _COMPLETED.answered(whole >= planned, float(whole), f"{whole} whole epochs, {run.last_step} steps", wanted)
