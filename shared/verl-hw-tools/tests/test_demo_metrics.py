# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import json
import math
from pathlib import Path

from verl_hw_tools.demo.metrics import Step, compare_resumed, loss_fell, read_steps


def step(number: int, loss: float, grad_norm: float = 1.0, held_out: float | None = None) -> Step:
    return Step(number=number, loss=loss, grad_norm=grad_norm, held_out_loss=held_out)


def test_reads_what_verl_logs_and_waits_for_the_rest_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert read_steps(path) == []
    lines = [
        {"step": 1, "data": {"train/loss": 5.5, "train/grad_norm": 2.0, "train/lr": 0.1}},
        {"step": 2, "data": {"train/loss": None, "train/grad_norm": 1.5}},
        {"step": 2, "data": {"val/loss": 4.5}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 3, "da')
    first, second = read_steps(path)
    assert first == step(1, 5.5, 2.0)
    assert math.isnan(second.loss)
    assert second.held_out_loss == 4.5


def test_loss_fell_needs_numbers_and_a_lower_end() -> None:
    assert loss_fell([step(1, 5.0), step(2, 6.0), step(3, 4.9)])
    assert not loss_fell([step(1, 5.0), step(2, 4.0), step(3, 5.0)])
    assert not loss_fell([step(1, 5.0), step(2, math.nan), step(3, 4.0)])
    assert not loss_fell([step(1, 5.0)])
    assert not loss_fell([])


WHOLE = [step(1, 5.0), step(2, 4.0), step(3, 3.0), step(4, 2.0, held_out=2.5)]


def test_an_equal_replay_is_exact() -> None:
    comparison = compare_resumed(WHOLE, WHOLE[2:], 3, 4)
    assert comparison.exact
    assert comparison.replayed == (3, 4)


def test_the_smallest_difference_is_named() -> None:
    off = math.nextafter(2.0, 3.0)
    comparison = compare_resumed(WHOLE, [WHOLE[2], step(4, off, held_out=2.5)], 3, 4)
    assert not comparison.exact
    assert comparison.differences == (f"step 4: loss 2.0 became {off!r} after the resume",)


def test_gradient_norm_and_held_out_loss_count_too() -> None:
    assert not compare_resumed(WHOLE, [step(3, 3.0, 1.5), WHOLE[3]], 3, 4).exact
    assert not compare_resumed(WHOLE, [WHOLE[2], step(4, 2.0)], 3, 4).exact


def test_a_run_that_started_over_is_not_a_resume() -> None:
    comparison = compare_resumed(WHOLE, WHOLE, 3, 4)
    assert not comparison.exact
    assert "step 1 was trained again" in comparison.differences


def test_missing_steps_and_missing_numbers_are_not_exact() -> None:
    assert compare_resumed(WHOLE, WHOLE[3:], 3, 4).differences == ("step 3 is missing in the resumed run",)
    assert not compare_resumed([], [], 3, 2).exact
    nan = [step(3, math.nan)]
    assert not compare_resumed(nan, nan, 3, 3).exact
