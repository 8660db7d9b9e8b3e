# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw accept`` as a user types it: exit codes, JSON, plots, the page, thresholds, missing packages."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import run_logs
from grpo_toy import records
from machine_speed import scaled
from typer.testing import CliRunner

from verl_hw_tools.acceptance.metrics import GRAD_NORM
from verl_hw_tools.cli.app import app

STEPS = 40


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    run_logs.file_logger(records("good", 0), folder / "reference.jsonl")
    run_logs.console(records("good", 1), folder / "good.log", after="baseline: training ended with exit code 0\n")
    run_logs.file_logger(records("divided", 1), folder / "divided.jsonl")
    run_logs.file_logger(records("good", 1)[:STEPS], folder / "short.jsonl")
    return folder


def accept(*arguments):
    return CliRunner().invoke(app, ["accept", *map(str, arguments)], env={"COLUMNS": "200"})


def test_a_good_run_is_accepted(logs):
    done = accept(logs / "good.log", "--reference", logs / "reference.jsonl")
    assert done.exit_code == 0, done.output
    first = done.stdout.splitlines()[1]
    assert "ACCEPTED" in first
    assert "console log, 100 steps" in done.stdout


def test_a_bad_run_is_rejected_with_the_reason_first(logs):
    done = accept(logs / "divided.jsonl", "--reference", logs / "reference.jsonl")
    assert done.exit_code == 1
    text = re.sub(r"\s+", " ", done.stdout)
    assert text.index("REJECTED") < text.index("FAIL gradient norm like the reference's: Gradients have another size")
    assert "0.126 times" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "No such file"),
        (["short.jsonl"], "the run has 40"),
        (["good.log", "--reference", "short.jsonl"], "short.jsonl: the first 100 steps"),
        (["good.log", "--set", "least_rize=0.1"], "did you mean 'least_rise'"),
        (["good.log", "--set", "least_rise"], "wanted NAME=NUMBER"),
        (["good.log", "--set", "grad_norm_factor=0.5"], "must be at least 1"),
        (["good.log", "--set", "steps=10.5"], "whole number"),
        (["good.log", "--thresholds", "nowhere.toml"], "cannot be used"),
        (["good.log", "--html", "no/such/folder.html"], "cannot be written"),
        (["good.log", "--png", "no/such/folder.png"], "cannot be written"),
        (["good.log", "--strict"], "--strict"),
    ],
)
def test_what_cannot_be_judged_ends_with_2_and_no_verdict(arguments, message, logs, monkeypatch):
    monkeypatch.chdir(logs)
    done = accept(*arguments)
    assert done.exit_code == 2
    assert message in re.sub(r"\s+", " ", done.stderr)
    assert done.stdout == ""


def test_json_is_pure_and_complete(logs, tmp_path):
    done = accept(
        logs / "divided.jsonl", "--reference", logs / "reference.jsonl", "--json", "--html", tmp_path / "x.html"
    )
    assert done.exit_code == 1
    data = json.loads(done.stdout)
    assert data["schema_version"] == 1
    assert data["verdict"] == "rejected"
    assert data["run"]["last_step"] == 100
    assert data["references"][0]["format"] == "file logger"
    criteria = {one["id"]: one for one in data["criteria"]}
    assert criteria["reference.grad_norm"]["status"] == "failed"
    assert criteria["reference.grad_norm"]["value"] == pytest.approx(0.126, abs=0.01)
    assert criteria["reward.trend"]["stated"] is True
    assert all(one["meaning"] for one in criteria.values())
    assert data["thresholds"]["grad_norm_factor"] == {
        "value": 1.4,
        "adjusted": False,
        "reason": data["thresholds"]["grad_norm_factor"]["reason"],
    }
    assert data["thresholds"]["grad_norm_factor"]["reason"]


def test_json_has_no_infinity(logs, tmp_path):
    zero = [(step, {**metrics, "actor/grad_norm": 0.0}) for step, metrics in records("good", 1)]
    path = run_logs.file_logger(zero, tmp_path / "zero.jsonl")
    reference = logs / "reference.jsonl"
    for run, other in ((path, reference), (reference, path)):
        data = json.loads(accept(run, "--reference", other, "--json").stdout, parse_constant=pytest.fail)
        assert data["verdict"] == "rejected"


def test_fewer_steps_when_asked(logs):
    done = accept(logs / "short.jsonl", "--steps", STEPS, "--total-steps", STEPS)
    assert done.exit_code == 0
    assert "Only the first 40 steps were judged" in re.sub(r"\s+", " ", done.stdout)


def test_thresholds_from_a_file_and_the_command_line(logs, tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text("grad_norm_factor = 2.0\nleast_rise = 0.1\n")
    run = [logs / "divided.jsonl", "--reference", logs / "reference.jsonl", "--thresholds", file]
    found = json.loads(accept(*run, "--set", "grad_norm_factor=10", "--json").stdout)
    assert found["verdict"] == "accepted"
    assert found["thresholds"]["grad_norm_factor"]["value"] == 10
    assert found["notes"] == ["Thresholds were changed: least_rise = 0.1, grad_norm_factor = 10."]
    assert accept(*run).exit_code == 1
    file.write_text("least_rise = 'much'\n")
    assert accept(*run).exit_code == 2


def test_the_page_needs_nothing_from_outside_and_is_escaped(tmp_path):
    folder = tmp_path / "<b>$x_1$ & co"
    folder.mkdir()
    run = run_logs.file_logger(records("good", 1), folder / "run<script>alert(1)<.jsonl")
    reference = run_logs.file_logger(records("good", 0), folder / "reference.jsonl")
    page = tmp_path / "report.html"
    done = accept(run, "--reference", reference, "--html", page)
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "run&lt;script&gt;" in text
    assert text.index("ACCEPTED") < text.index("reward trends upward")
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert not re.search(r"url\(|@import|https?://", text)
    assert "default-src 'none'" in text


def test_the_plots_are_a_png_file_or_in_a_folder(logs, tmp_path):
    run = [logs / "good.log", "--reference", logs / "reference.jsonl"]
    assert accept(*run, "--png", tmp_path / "plots.png").exit_code == 0
    assert accept(*run, "--png", tmp_path).exit_code == 0
    for path in (tmp_path / "plots.png", tmp_path / "verl-hw-accept.png"):
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG")
        assert int.from_bytes(content[16:20], "big") > 1000


def test_a_value_that_is_no_number_after_the_steps_judged_is_noted_and_marked(logs, tmp_path):
    from verl_hw_tools.acceptance import plots
    from verl_hw_tools.acceptance.judge import judge
    from verl_hw_tools.acceptance.readers import read_run
    from verl_hw_tools.acceptance.thresholds import Thresholds

    lost = {60: float("nan"), 61: float("nan"), 70: float("inf")}
    logged = [(step, {**all_, GRAD_NORM: lost.get(step, all_[GRAD_NORM])}) for step, all_ in records("good", 1)]
    run = run_logs.console(logged, tmp_path / "run.log")
    done = accept(run, "--steps", STEPS, "--json", "--png", tmp_path)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)["notes"][-1]
    assert f"{GRAD_NORM} is no finite number at steps 60, 61, 70, after the steps judged" in said

    figure = plots._figure(judge(read_run(run), [], Thresholds().changed({"steps": STEPS})))
    axes = next(one for one in figure.axes if "gradient norm" in one.get_title("left"))
    raw, smooth, *marks = sorted(axes.lines, key=lambda line: -len(line.get_xdata()))
    assert [mark.get_xdata()[0] for mark in marks] == [60, 61, 70]
    assert len(smooth.get_ydata()) == 97
    assert all(map(math.isfinite, smooth.get_ydata()))
    assert raw.get_xdata()[-1] == 100


@pytest.mark.parametrize("option", ["--html", "--png"])
def test_a_log_is_not_overwritten_with_its_report(option, logs, tmp_path):
    log = tmp_path / "run.log"
    log.write_bytes((logs / "good.log").read_bytes())
    done = accept(log, option, log)
    assert done.exit_code == 2
    assert f"{option} {log} is one of the logs" in done.stderr
    assert log.read_bytes() == (logs / "good.log").read_bytes()


def test_a_name_that_is_no_text_can_be_drawn_and_printed(logs, tmp_path):
    log = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run-\xff.log"))
    log.write_bytes((logs / "good.log").read_bytes())
    done = accept(log, "--html", tmp_path / "page.html", "--png", tmp_path)
    assert done.exit_code == 0, done.output
    assert r"run-\xff.log" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("missing", ["scipy", "pymannkendall", "matplotlib", "tensorboard"])
def test_a_missing_package_is_named_with_the_line_to_type(missing, logs, tmp_path):
    events = run_logs.events(records("good", 1), tmp_path / "events")
    script = (
        "import sys\n"
        f"sys.modules[{missing!r}] = None\n"
        f"sys.argv = ['verl-hw', 'accept', {str(events)!r}, '--html', {str(tmp_path / 'x.html')!r}]\n"
        "from verl_hw_tools.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=scaled(120))
    assert done.returncode == 2, done.stderr
    assert "pip install 'verl-hw-tools[accept]'" in done.stderr
    assert done.stdout == ""


def test_neither_torch_nor_verl_is_imported(logs):
    script = (
        "import sys\n"
        f"sys.argv = ['verl-hw', 'accept', {str(logs / 'good.log')!r}, '--json']\n"
        "from verl_hw_tools.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "sys.stderr.write(' '.join(sorted({'torch', 'verl', 'pandas', 'matplotlib'} & set(sys.modules))))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=scaled(120))
    assert json.loads(done.stdout)["verdict"] == "accepted"
    assert done.stderr == ""


def test_help_imports_none_of_what_computes():
    script = (
        "import sys\n"
        "sys.argv = ['verl-hw', 'accept', '--help']\n"
        "from verl_hw_tools.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'rich', 'verl_hw_tools.acceptance'}\n"
        "sys.stderr.write(' '.join(sorted(heavy & set(sys.modules))))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=scaled(120))
    assert "--reference" in done.stdout
    assert done.stderr == ""
