# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Each log format is read as what was logged, and each kind of damage is an error that says what to do."""

import errno
import gzip
import math
import os
from pathlib import Path

import pytest
import run_logs
from grpo_toy import records

from verl_hw_tools.acceptance.metrics import GRAD_NORM, JUDGED, REWARD
from verl_hw_tools.acceptance.readers import read_run
from verl_hw_tools.errors import DamagedLogError, DuplicateStepsError, MissingMetricError, UnreadableLogError

STEPS = 12


@pytest.fixture(scope="module")
def logged():
    return records(steps=STEPS)


def column(run, metric):
    return run.values(metric, STEPS)


def expected(logged, metric):
    return pytest.approx([metrics[metric] for _, metrics in logged], rel=1e-6)


def write(kind, logged, folder):
    path = folder / f"run-{kind}"
    writers = {
        "console": run_logs.console,
        "file": run_logs.file_logger,
        "tensorboard": run_logs.events,
        "csv": run_logs.history,
    }
    return writers[kind](logged, path)


@pytest.mark.parametrize("kind", ["console", "file", "tensorboard", "csv"])
def test_each_format_gives_the_numbers_that_were_logged(kind, logged, tmp_path):
    run = read_run(write(kind, logged, tmp_path))
    assert run.last_step == STEPS
    for metric in JUDGED:
        assert column(run, metric) == expected(logged, metric)


@pytest.mark.parametrize("chart", [run_logs.wandb_chart, run_logs.swanlab_chart])
def test_a_chart_exported_from_a_page(chart, logged, tmp_path):
    run = read_run(chart(logged, tmp_path / "chart.csv", REWARD))
    assert column(run, REWARD) == expected(logged, REWARD)
    assert set(run.columns) == {REWARD}


def test_a_folder_of_charts_is_one_run(logged, tmp_path):
    for number, metric in enumerate((REWARD, GRAD_NORM)):
        run_logs.wandb_chart(logged, tmp_path / f"{number}.csv", metric)
    run = read_run(tmp_path)
    assert column(run, REWARD) == expected(logged, REWARD)
    assert column(run, GRAD_NORM) == expected(logged, GRAD_NORM)


def test_a_console_log_is_read_through_what_ray_and_terminals_add(logged, tmp_path):
    path = tmp_path / "train.log"
    lines = run_logs.console(logged, path).read_text().splitlines()
    bar = "Training Progress:   8%|\x1b[32m8\x1b[0m         | 1/12 [00:18<03:20, 18.3s/it]\r"
    lines[0] = f"\x1b[36m(TaskRunner pid=4321)\x1b[0m {bar}" + lines[0]
    lines[3] += " [repeated 2x across cluster] (Ray deduplicates logs by default.)"
    lines[5] = lines[5].replace(
        "critic/score/mean:", "num_turns/min:np.int32(2) - x:np.float64(2.5) - critic/score/mean:"
    )
    path.write_text("\r\n".join(lines) + "\r\n")
    run = read_run(path)
    assert column(run, REWARD) == expected(logged, REWARD)
    assert run.columns["x"] == {6: 2.5}


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        ("Training Progress: 100%|####| 12/12 [03:00<00:00, 15.0s/it]\n", (12, True, None)),
        ("Training Progress:  50%|##  | 6/12 [03:00<00:00, 15.0s/it]\n", (12, False, None)),
        ("('Final validation metrics: '\n \"{'val-core/gsm8k': 0.6}\")\n", (None, None, None)),
        ("(TaskRunner pid=1) \"Final validation metrics: {'val-core/gsm8k': 0.6}\"\n", (None, True, None)),
        (
            "Error executing job with overrides: ['a=1']\nTraceback (most recent call last):\n  File 'x'\n"
            "ray.exceptions.RayTaskError(RuntimeError): ray::run() (pid=1)\n  File 'y'\nRuntimeError: boom\n",
            (None, None, "RuntimeError: boom"),
        ),
    ],
)
def test_what_a_console_log_says_of_the_end(after, wanted, logged, tmp_path):
    ending = read_run(run_logs.console(logged, tmp_path / "log", after=after)).ending
    planned, finished, error = wanted
    assert (ending.planned_steps, ending.error) == (planned, error)
    if finished is not None:
        assert ending.finished is finished


def test_the_planned_epochs_are_in_the_printed_configuration(logged, tmp_path):
    ending = read_run(run_logs.console(logged, tmp_path / "log", before="  'total_epochs': 15,\n")).ending
    assert ending.planned_epochs == 15


def test_nan_is_kept_and_refused_when_it_is_asked_for(logged, tmp_path):
    spoiled = [(step, {**metrics, GRAD_NORM: math.nan if step == 4 else 0.1}) for step, metrics in logged]
    for kind in ("console", "file", "tensorboard", "csv"):
        run = read_run(write(kind, spoiled, tmp_path))
        assert math.isnan(run.columns[GRAD_NORM][4])
        with pytest.raises(DamagedLogError, match=r"actor/grad_norm must be a number .* step 4"):
            column(run, GRAD_NORM)


@pytest.mark.parametrize("kind", ["console", "file", "tensorboard", "csv"])
def test_a_resumed_run_is_an_error_until_it_is_called_one(kind, logged, tmp_path):
    again = [(step, {**metrics, REWARD: 0.5}) for step, metrics in logged[7:]]
    path = write(kind, [*logged[:10], *again], tmp_path)
    with pytest.raises(DuplicateStepsError, match=r"from step 8 on, after step 10.*--resumed"):
        read_run(path)
    run = read_run(path, resumed=True)
    assert column(run, REWARD) == pytest.approx([metrics[REWARD] for _, metrics in logged[:7]] + [0.5] * 5)


@pytest.mark.parametrize("kind", ["console", "file", "tensorboard", "csv"])
@pytest.mark.parametrize("resumed", [False, True])
def test_two_runs_in_one_log(kind, resumed, logged, tmp_path):
    path = write(kind, [*logged, *logged], tmp_path)
    with pytest.raises(DuplicateStepsError, match="several runs"):
        read_run(path, resumed=resumed)


def test_validation_before_training_and_after_a_resume_is_no_duplicate(logged, tmp_path):
    check = {"val-core/openai/gsm8k/acc/mean@1": 0.3}
    path = run_logs.file_logger([(0, check), *logged[:6], (6, check), *logged[6:]], tmp_path / "run")
    assert column(read_run(path), REWARD) == expected(logged, REWARD)


def test_two_event_folders_are_two_runs(logged, tmp_path):
    for name in ("a", "b"):
        run_logs.events(logged, tmp_path / name)
    with pytest.raises(UnreadableLogError, match=r"event files of 2 runs"):
        read_run(tmp_path)


def test_a_chart_of_two_runs(logged, tmp_path):
    path = tmp_path / "chart.csv"
    path.write_text(f"Step,one - {REWARD},two - {REWARD}\n1,0.1,0.2\n")
    with pytest.raises(DuplicateStepsError, match="several runs"):
        read_run(path)


def cut(path, kind):
    if kind == "tensorboard":
        (path,) = path.iterdir()
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"critic/rewards") + 9])


@pytest.mark.parametrize("kind", ["console", "file", "tensorboard", "csv"])
def test_a_log_that_is_cut_off(kind, logged, tmp_path):
    path = write(kind, logged, tmp_path)
    if kind == "csv":
        path.write_bytes(path.read_bytes()[:-40])
    else:
        cut(path, kind)
    with pytest.raises(DamagedLogError, match=r"cut off|ends within"):
        read_run(path)


def test_a_broken_checksum_in_an_event_file(logged, tmp_path):
    (path,) = run_logs.events(logged, tmp_path / "run").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DamagedLogError, match=r"damaged|ends within"):
        read_run(path)


def test_a_line_that_another_process_wrote_into(logged, tmp_path):
    path = run_logs.console(logged, tmp_path / "log")
    lines = path.read_text().splitlines()
    at = lines[4].index("critic/rewards/mean:") + len("critic/rewards/mean:")
    lines[4] = lines[4][:at] + "0.(Worker pid=77) loading" + lines[4][at:]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DamagedLogError, match=r"line 5: wanted a number after critic/rewards/mean"):
        read_run(path)


def test_missing_steps_are_named(logged, tmp_path):
    run = read_run(run_logs.console([*logged[:4], *logged[6:]], tmp_path / "log"))
    with pytest.raises(DamagedLogError, match=r"missing at steps 5, 6"):
        column(run, REWARD)
    run = read_run(run_logs.file_logger(logged[5:], tmp_path / "tail"))
    with pytest.raises(DamagedLogError, match=r"begins at step 6.*console log"):
        column(run, REWARD)


@pytest.mark.parametrize("kind", ["console", "file", "tensorboard", "csv"])
def test_a_number_that_is_no_step_is_said_to_be_none(kind, logged, tmp_path):
    stamped = [*logged[:-1], (10**13, logged[-1][1])]
    with pytest.raises(DamagedLogError, match=r"at most 1000000, found 10000000000000\. .*export by step"):
        read_run(write(kind, stamped, tmp_path))


def test_a_log_without_a_reward_says_what_it_has(logged, tmp_path):
    poor = [(step, {"train/loss": 1.0}) for step, _ in logged]
    for kind in ("console", "file", "tensorboard"):
        with pytest.raises(MissingMetricError, match=r"wanted critic/rewards/mean, found train/loss"):
            read_run(write(kind, poor, tmp_path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"hello\nworld\n", "none of the logs"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary file"),
        (b"Training Progress: 0%| | 0/10 [00:00<?]\nKilled\n", "without a single step"),
        (b'{"name": "other", "value": 3}\n', "another program"),
        (b'{"step": 1, "data": [1, 2]}\n', "another program"),
        (b"Step,epoch\n1,2\n", "wanted critic/rewards/mean"),
        (b"time,critic/rewards/mean\n1,2\n", "column with the step"),
        (b"Step,critic/rewards/mean\n1.5,2\n", "whole number"),
        (b"Step,critic/rewards/mean\n1,abc\n", "wanted a number"),
    ],
)
def test_a_file_of_another_kind(content, message, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises((UnreadableLogError, DamagedLogError, MissingMetricError), match=message) as caught:
        read_run(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", ["x" * 200_000, f'step,{REWARD}\n1,"0.1\n' + "2,0.12345\n" * 20_000])
def test_a_field_that_is_too_long_for_csv_is_no_crash(content, tmp_path):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises((UnreadableLogError, DamagedLogError), match=r"none of the logs|no whole CSV file"):
        read_run(path)


def test_a_table_with_the_newest_step_first(logged, tmp_path):
    run = read_run(run_logs.history(logged[::-1], tmp_path / "table.csv"))
    assert column(run, REWARD) == expected(logged, REWARD)


def test_the_first_step_behind_much_other_output(logged, tmp_path):
    before = "(TaskRunner pid=1) main_ppo: a line that is not a step\n" * 100_000
    run = read_run(run_logs.console(logged, tmp_path / "train.log", before=before))
    assert run.format == "console log"
    assert column(run, REWARD) == expected(logged, REWARD)


@pytest.mark.parametrize("name", ["metrics.jsonl.gz", "events.out.tfevents.1.gz"])
def test_a_compressed_log_is_to_be_unpacked(name, logged, tmp_path):
    packed = tmp_path / name
    packed.write_bytes(gzip.compress(run_logs.file_logger(logged, tmp_path / "plain").read_bytes()))
    with pytest.raises(UnreadableLogError, match="is compressed: unpack it first"):
        read_run(packed)


def test_a_metric_that_begins_after_the_reward_is_no_resume(logged, tmp_path):
    late = [
        (step, {name: value for name, value in metrics.items() if name != GRAD_NORM or step > 3})
        for step, metrics in logged
    ]
    run = read_run(run_logs.file_logger(late, tmp_path / "run.jsonl"))
    with pytest.raises(DamagedLogError, match=r"begins at step 4, though the reward begins at step 1.*critic_warmup"):
        column(run, GRAD_NORM)


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(UnreadableLogError, match="No such file"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(UnreadableLogError, match=r"neither event files nor CSV files; it has no file"):
        read_run(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UnreadableLogError, match=r"it has the files notes\.txt"):
        read_run(tmp_path)


def test_a_file_without_permission(tmp_path, monkeypatch):
    path = tmp_path / "locked"
    path.write_text("step:1 - critic/rewards/mean:0.1\n")

    def refuse(*_arguments, **_options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    # Root may read every file, so a mode would prove nothing.
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UnreadableLogError, match=r"locked cannot be read: Permission denied"):
        read_run(path)
