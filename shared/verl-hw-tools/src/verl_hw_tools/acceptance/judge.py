# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The verdict on a run, from all criteria."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from verl_hw_tools.acceptance.comparison import comparison
from verl_hw_tools.acceptance.completion import Plan, completion, failed_early
from verl_hw_tools.acceptance.criterion import Criterion, Status
from verl_hw_tools.acceptance.metrics import JUDGED
from verl_hw_tools.acceptance.reward import reward_criteria
from verl_hw_tools.acceptance.run import Run, steps_text
from verl_hw_tools.acceptance.soundness import soundness
from verl_hw_tools.acceptance.thresholds import Thresholds, reasons
from verl_hw_tools.errors import NotJudgedError

SCHEMA_VERSION = 1
"""Version of the JSON form: raised when a name in it changes its meaning or goes."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on a run.

    Attributes:
        run: The run.
        references: What it was compared with.
        limits: What it was held against.
        criteria: All criteria, the stated ones first.
        notes: What the reader of the verdict must know.
    """

    run: Run
    references: Sequence[Run]
    limits: Thresholds
    criteria: Sequence[Criterion]
    notes: Sequence[str]

    @property
    def accepted(self) -> bool:
        """Whether no criterion failed."""
        return not self.of(Status.FAILED)

    def of(self, status: Status) -> list[Criterion]:
        """Return the criteria with this outcome."""
        return [criterion for criterion in self.criteria if criterion.status is status]

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        failed, skipped = self.of(Status.FAILED), self.of(Status.NOT_JUDGED)
        if failed:
            judged = len(self.criteria) - len(skipped)
            return f"REJECTED: {len(failed)} of {judged} criteria failed"
        stated = [one for one in self.criteria if one.stated]
        undecided = sum(one.stated for one in skipped)
        if undecided:
            return f"ACCEPTED as far as it can be judged: {undecided} of {len(stated)} stated criteria are open"
        return "ACCEPTED" + (f" ({len(skipped)} criteria not judged)" if skipped else "")

    def as_data(self) -> dict[str, Any]:
        """Return the verdict for programs."""
        return {
            "schema_version": SCHEMA_VERSION,
            "verdict": "accepted" if self.accepted else "rejected",
            "run": _run_data(self.run),
            "references": [_run_data(reference) for reference in self.references],
            "criteria": [_criterion_data(one) for one in self.criteria],
            "notes": list(self.notes),
            "thresholds": _thresholds_data(asdict(self.limits), self.limits.adjusted),
        }


def judge(
    run: Run, references: Sequence[Run], limits: Thresholds, plan: Plan | None = None, *, strict: bool = False
) -> Verdict:
    """Judge a run.

    Args:
        run: The run.
        references: Good runs of the same recipe, or none.
        limits: The thresholds.
        plan: What the user says that the run was meant to be.
        strict: Give no verdict when a stated criterion cannot be judged.

    Raises:
        RunTooShortError: A run has fewer steps than are judged, and did not break off with an error.
        DamagedLogError: A step or a number that is judged is missing.
        NotJudgedError: A reference is no good run, or ``strict`` and a stated criterion is open.
    """
    plan = plan or Plan()
    completed = completion(run, plan, references)
    if failed_early(run) and run.last_step < limits.steps:
        note = f"Training broke off before step {limits.steps}, so nothing else was judged."
        return Verdict(run=run, references=references, limits=limits, criteria=[completed], notes=[note])
    for reference in references:
        _check_reference(reference, limits)
    criteria = [*reward_criteria(run, limits), completed, *comparison(run, references, limits), *soundness(run, limits)]
    criteria.sort(key=lambda criterion: not criterion.stated)
    verdict = Verdict(
        run=run, references=references, limits=limits, criteria=criteria, notes=_notes(run, references, limits)
    )
    undecided = [one for one in verdict.of(Status.NOT_JUDGED) if one.stated]
    if strict and undecided and verdict.accepted:
        told = "; ".join(f"{one.title}: {one.meaning}" for one in undecided)
        raise NotJudgedError(f"{run.source}: no verdict, since --strict wants every stated criterion judged. {told}")
    return verdict


def _check_reference(reference: Run, limits: Thresholds) -> None:
    bad = [one for one in reward_criteria(reference, limits) if one.status is Status.FAILED]
    if bad or failed_early(reference):
        why = "; ".join(f"{one.title}: {one.found}, wanted {one.wanted}" for one in bad) or "its training broke off"
        raise NotJudgedError(
            f"{reference.source}: the reference is itself no good run, so nothing can be compared with it ({why}). "
            "Give a run that was accepted"
        )


def _notes(run: Run, references: Sequence[Run], limits: Thresholds) -> list[str]:
    notes = []
    default = Thresholds()
    if limits.steps < default.steps:
        notes.append(
            f"Only the first {limits.steps} steps were judged, as asked; the field's criterion wants {default.steps}."
        )
    others = {name: value for name, value in limits.adjusted.items() if name != "steps"}
    if others:
        notes.append(
            "Thresholds were changed: " + ", ".join(f"{name} = {value:g}" for name, value in others.items()) + "."
        )
    if any(run.columns == reference.columns for reference in references):
        notes.append("The reference is the same run: comparing it with itself says nothing.")
    if run.ending.error and not failed_early(run):
        notes.append(f"The log holds an error, though training went on to its end: {run.ending.error[:160]}")
    for one in (run, *references):
        # Within the steps judged they are an error.
        broken = {metric: one.broken(metric) for metric in JUDGED if one.has(metric)}
        notes += [
            f"{one.source}: {metric} is no finite number at {steps_text(steps)}, after the steps judged. Look at the "
            "losses there."
            for metric, steps in broken.items()
            if steps
        ]
    return notes


def _criterion_data(criterion: Criterion) -> dict[str, Any]:
    # JSON knows no infinity: a ratio to a curve that is zero.
    finite = criterion.value is not None and math.isfinite(criterion.value)
    return {**asdict(criterion), "status": criterion.status.value, "value": criterion.value if finite else None}


def _run_data(run: Run) -> dict[str, Any]:
    found = [metric for metric in JUDGED if run.has(metric)]
    return {"source": run.source, "format": run.format, "last_step": run.last_step, "metrics": found}


def _thresholds_data(values: Mapping[str, float], adjusted: Mapping[str, float]) -> dict[str, Any]:
    return {
        name: {"value": value, "adjusted": name in adjusted, "reason": reasons()[name]}
        for name, value in values.items()
    }
