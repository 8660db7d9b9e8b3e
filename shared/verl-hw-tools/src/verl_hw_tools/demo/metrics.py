# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Read what verl's own file logger wrote, and compare two runs exactly."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TRAIN_LOSS, _GRAD_NORM, _HELD_OUT_LOSS = "train/loss", "train/grad_norm", "val/loss"


@dataclass(frozen=True, kw_only=True)
class Step:
    """Metrics of one training step. A number that was not logged, or logged as null (not finite), is NaN.

    Attributes:
        number: The step, from 1.
        loss: Training loss.
        grad_norm: Norm of the gradients before clipping.
        held_out_loss: Loss on held-out data, or None where it was not measured.
    """

    number: int
    loss: float
    grad_norm: float
    held_out_loss: float | None = None


@dataclass(frozen=True)
class Comparison:
    """What a resumed run repeated of an uninterrupted one.

    Attributes:
        replayed: Steps that were compared.
        differences: One line for every number that is not equal, and for every step that one of them lacks.
    """

    replayed: tuple[int, ...]
    differences: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether at least one step was compared and every number was equal."""
        return bool(self.replayed) and not self.differences


def read_records(path: Path) -> list[tuple[int, Mapping[str, object]]]:
    """Read what verl's file logger wrote so far, all metrics of each step; an unfinished last line is left out."""
    if not path.exists():
        return []
    *lines, _unfinished = path.read_text(encoding="utf-8").split("\n")
    merged: dict[int, dict[str, object]] = {}
    for line in filter(None, lines):
        record = json.loads(line)
        merged.setdefault(int(record["step"]), {}).update(record["data"])
    return sorted(merged.items())


def read_steps(path: Path) -> list[Step]:
    """Read the training steps of verl's SFT trainer."""
    return [_step(number, values) for number, values in read_records(path) if _TRAIN_LOSS in values]


def loss_fell(steps: Sequence[Step]) -> bool:
    """Whether every loss is a number and the last one is below the first."""
    return len(steps) > 1 and all(math.isfinite(step.loss) for step in steps) and steps[-1].loss < steps[0].loss


def compare_resumed(whole: Iterable[Step], resumed: Iterable[Step], first: int, last: int) -> Comparison:
    """Compare the steps ``first`` to ``last`` of two runs, number by number, without any tolerance."""
    left = {step.number: step for step in whole}
    right = {step.number: step for step in resumed}
    differences = [f"step {number} was trained again" for number in sorted(right) if number < first]
    replayed = []
    for number in range(first, last + 1):
        if number not in left or number not in right:
            where = "uninterrupted" if number not in left else "resumed"
            differences.append(f"step {number} is missing in the {where} run")
            continue
        replayed.append(number)
        differences += _differences(left[number], right[number])
    return Comparison(tuple(replayed), tuple(differences))


def _differences(whole: Step, resumed: Step) -> list[str]:
    pairs = (
        ("loss", whole.loss, resumed.loss),
        ("grad norm", whole.grad_norm, resumed.grad_norm),
        ("held-out loss", whole.held_out_loss, resumed.held_out_loss),
    )
    # NaN equals nothing, itself included: a run without numbers is never called exact.
    return [
        f"step {whole.number}: {name} {left!r} became {right!r} after the resume"
        for name, left, right in pairs
        if left != right
    ]


def _step(number: int, values: Mapping[str, object]) -> Step:
    held_out = as_number(values[_HELD_OUT_LOSS]) if _HELD_OUT_LOSS in values else None
    return Step(
        number=number,
        loss=as_number(values.get(_TRAIN_LOSS)),
        grad_norm=as_number(values.get(_GRAD_NORM)),
        held_out_loss=held_out,
    )


def as_number(value: object) -> float:
    """Return a logged number; NaN where none was logged, or null for one that is not finite."""
    return float(value) if isinstance(value, int | float) else math.nan


def finite_or_none(value: float | None) -> float | None:
    """Return a number for JSON, which knows neither NaN nor infinity."""
    return value if value is not None and math.isfinite(value) else None
