# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""One training run as read from a log: a column of values per metric, and how the run ended."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from verl_hw_tools.acceptance.metrics import REWARD
from verl_hw_tools.errors import DamagedLogError, DuplicateStepsError, MissingMetricError, RunTooShortError

LEAST_STEPS = 10
"""Fewer are never judged: no statistic says anything on them."""

MOST_STEPS = 1_000_000
"""A larger step number is none: RL steps take seconds at least, so this many take months."""

_MOST_STEPS_NAMED = 6


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a log tells about the end of its run; None is for what it does not tell.

    Attributes:
        planned_steps: Steps that the trainer meant to take.
        planned_epochs: Epochs that it was configured for.
        finished: Whether the trainer said that it was done.
        exit_code: Exit status of the training command, where its log holds it.
        error: First line of the error that ended it.
    """

    planned_steps: int | None = None
    planned_epochs: int | None = None
    finished: bool | None = None
    exit_code: int | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run.

    Attributes:
        source: Where it was read from, for people.
        format: Name of the log's format.
        columns: Values by metric and step; what was logged as null or NaN is NaN.
        ending: How it ended.
    """

    source: str
    format: str
    columns: Mapping[str, Mapping[int, float]]
    ending: Ending = field(default_factory=Ending)

    @property
    def last_step(self) -> int:
        """The last step with a reward."""
        return max(self.columns[REWARD])

    def broken(self, metric: str) -> list[int]:
        """Return the steps at which a metric that the log holds is NaN or infinite."""
        return [step for step, value in self.columns[metric].items() if not math.isfinite(value)]

    def has(self, metric: str) -> bool:
        """Whether the log holds this metric at all."""
        return metric in self.columns

    def values(self, metric: str, last: int) -> list[float]:
        """Return a metric's values at the steps 1 to ``last``.

        Raises:
            MissingMetricError: The log does not hold the metric.
            RunTooShortError: The run ended before step ``last``.
            DamagedLogError: Steps are missing, or a value is no number.
        """
        column = self._column(metric)
        if self.last_step < last:
            enough = self.last_step >= LEAST_STEPS
            less = f", or ask for less with --steps {self.last_step}: the report will say so" if enough else ""
            raise RunTooShortError(
                f"{self.source}: the first {last} steps are judged and the run has {self.last_step}. Train on{less}"
            )
        absent = [step for step in range(1, last + 1) if step not in column]
        if absent:
            whole = min(self.columns[REWARD]) == 1
            raise DamagedLogError(f"{self.source}: {_absent(metric, absent, min(column), rewarded=whole)}")
        values = [column[step] for step in range(1, last + 1)]
        broken = [step for step, value in enumerate(values, 1) if not math.isfinite(value)]
        if broken:
            raise DamagedLogError(
                f"{self.source}: {metric} must be a number at every step judged; it is {values[broken[0] - 1]} at "
                f"{steps_text(broken)}. A value that is not finite comes from the training itself: look at the log and "
                "the losses there, and train again; there is nothing to judge in it"
            )
        return values

    def _column(self, metric: str) -> Mapping[int, float]:
        if metric not in self.columns:
            raise MissingMetricError(
                f"{self.source}: wanted {metric}, found {_names(self.columns)}. Is it the log of a PPO or GRPO run, "
                "exported with this metric?"
            )
        return self.columns[metric]


class RunBuilder:
    """Collects what a reader finds, in the order of the log.

    Args:
        source: Where it comes from, for people.
        log_format: Name of the log's format.
        resumed: Whether a jump back to an earlier step is a resume from a checkpoint: what had been logged from that
            step on is then dropped. Otherwise it is an error.
    """

    def __init__(self, source: str, log_format: str, *, resumed: bool = False) -> None:
        self.source = source
        self.ending = Ending()
        self._format = log_format
        self._resumed = resumed
        self._columns: dict[str, dict[int, float]] = {}
        self._latest: dict[str, int] = {}

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Add what was logged at one step.

        Raises:
            DuplicateStepsError: The step was there before, and the log was not said to be of a resumed run.
            DamagedLogError: The number cannot be that of a step.
        """
        if step > MOST_STEPS:
            raise DamagedLogError(
                f"{self.source}: wanted the number of a training step, at most {MOST_STEPS}, found {step}. The log is "
                "damaged, or times or tokens stand where the step belongs: give a complete log, or export by step"
            )
        for metric, value in values.items():
            # Validation is logged before the first step and again after a resume; nothing here judges it.
            if not metric.startswith("val-"):
                self._add(metric, step, value)

    def _add(self, metric: str, step: int, value: float) -> None:
        column = self._columns.setdefault(metric, {})
        if column and step <= self._latest[metric]:
            self._go_back(metric, column, step)
        column[step] = value
        self._latest[metric] = step

    def _go_back(self, metric: str, column: dict[int, float], step: int) -> None:
        if step <= min(column):
            raise DuplicateStepsError(
                f"{self.source}: {metric} starts again at step {step} after step {self._latest[metric]}: the log holds "
                "several runs. One run is judged at a time: split the log, or export one run"
            )
        if not self._resumed:
            raise DuplicateStepsError(
                f"{self.source}: {metric} is logged again from step {step} on, after step {self._latest[metric]}. If "
                "training was resumed from a checkpoint there, say --resumed: the steps trained twice then count as "
                "in the later attempt"
            )
        for dropped in [one for one in column if one >= step]:
            del column[dropped]

    def build(self) -> Run:
        """Return the run.

        Raises:
            MissingMetricError: There is no reward in it.
        """
        if REWARD not in self._columns:
            found = _names(self._columns) if self._columns else "no metric of verl"
            raise MissingMetricError(
                f"{self.source}: read as {self._format}; wanted {REWARD}, found {found}. Give a log of verl's PPO or "
                "GRPO trainer that holds it"
            )
        return Run(source=self.source, format=self._format, columns=self._columns, ending=self.ending)


def steps_text(steps: Sequence[int]) -> str:
    """Name some steps, as few as tell where to look."""
    if len(steps) == 1:
        return f"step {steps[0]}"
    shown = ", ".join(str(step) for step in steps[:_MOST_STEPS_NAMED])
    more = len(steps) - _MOST_STEPS_NAMED
    return f"steps {shown}" + (f" and {more} more" if more > 0 else "")


def _absent(metric: str, absent: Sequence[int], first: int, *, rewarded: bool) -> str:
    if absent == list(range(1, first)) and rewarded:
        return (
            f"{metric} begins at step {first}, though the reward begins at step 1. With trainer.critic_warmup the "
            "policy is not trained before, and such a run cannot be judged: train without. Otherwise the log lost it: "
            "give a complete one"
        )
    if absent == list(range(1, first)):
        return (
            f"{metric} begins at step {first}, and the steps from 1 on are judged. After a resume verl's file logger "
            "starts its file anew: give the console log, which holds both parts, or the event files"
        )
    return (
        f"{metric} is missing at {steps_text(absent)}: the log is damaged, cut off, or was thinned out by the export "
        "(wandb samples long runs: export with scan_history). Give a complete one"
    )


def _names(columns: Mapping[str, object]) -> str:
    names = sorted(columns)
    shown = ", ".join(names[:_MOST_STEPS_NAMED])
    return shown + (f" and {len(names) - _MOST_STEPS_NAMED} more metrics" if len(names) > _MOST_STEPS_NAMED else "")
