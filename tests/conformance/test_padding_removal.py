# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Padding removal without flash attention: packed equals padded, and no sequence sees another (field report 68)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment
from tiny_models import write_language_model, write_value_model

from verl_hw_sim import simulated_environment

HERE = Path(__file__).parent
HEADS = ("language_model", "value_model")
SETTINGS = (None, "sdpa", "eager")
RANKS = (2, 4)  # the model has two key-value heads: with four ranks they must be copied

pytestmark = [pytest.mark.slow, pytest.mark.ci]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[int, list[dict]]:
    """What each rank wrote, by number of ranks."""
    out = tmp_path_factory.mktemp("padding")
    write_language_model(out / "language_model")
    write_value_model(out / "value_model")
    settings = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.fspath(HERE)}
    sizes = (1, *RANKS)
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "padding_program.py"), str(out), str(out), *map(str, sizes)],
        env=clean_environment(**settings, **simulated_environment("cambricon", max(sizes))),
        capture_output=True,
        text=True,
        timeout=scaled(280),
        check=False,
    )
    errors = "".join(path.read_text() for path in sorted(out.glob("error-*.txt")))
    assert finished.returncode == 0, errors or finished.stderr[-3000:]
    return {
        size: [json.loads((out / f"result-{size}-{rank}.json").read_text()) for rank in range(size)] for size in sizes
    }


def assert_close(found: list[list[float]], expected: list[list[float]]) -> None:
    assert len(found) == len(expected) == 4
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("setting", SETTINGS)
class TestOneRank:
    def test_the_users_choice_or_sdpa_is_used(self, runs, setting, head):
        assert runs[1][0][f"{setting}-{head}"]["attention"] == (setting or "sdpa")

    def test_packed_equals_padded(self, runs, setting, head):
        written = runs[1][0][f"{setting}-{head}"]
        assert_close(written["packed"], written["padded"])
        assert written["packed gradients"] == pytest.approx(written["padded gradients"], rel=1e-5)
        assert all(norm > 0 for name, norm in written["packed gradients"].items() if "bias" not in name)

    def test_a_changed_sequence_changes_no_other_at_all(self, runs, setting, head):
        written = runs[1][0][f"{setting}-{head}"]
        same = [before == after for before, after in zip(written["packed"], written["changed"], strict=True)]
        assert same == [True, False, True, True]


def test_the_reference_runs_with_sdpa_too(runs):
    (written,) = runs[1]
    assert written["reference"]["attention"] == "sdpa"
    for found, expected in zip(written["reference"]["packed"], written["sdpa-language_model"]["packed"], strict=True):
        assert found == pytest.approx(expected, abs=0.05)  # verl loads a reference in bfloat16


def test_every_model_family_is_packed_right_or_refused(runs):
    models = {name: result for name, result in runs[1][0]["models"].items() if name != "control"}
    assert len(models) == 14
    for name, written in models.items():
        assert written["change"] > 0.01, name
        if name.startswith("qwen3_next"):
            assert "use_remove_padding=False" in written["refusal"]
            assert written["leak"] > 1e-3, "it no longer leaks: the refusal can go"
        else:
            assert written["refusal"] == ""
            assert written["leak"] == 0, name
            assert written["off by"] < 1e-5 * written["size"], name


def test_verls_own_patching_would_not_run_a_vision_language_model(runs):
    assert "error" in runs[1][0]["models"]["control"], "row flash-only-attention is no longer needed"
    assert "flash-only-attention" in runs[1][0]["rows"]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("ranks", RANKS)
class TestSequenceParallelism:
    def test_it_equals_one_rank(self, runs, ranks, head):
        expected = runs[1][0][f"None-{head}"]
        for written in runs[ranks]:
            assert_close(written[head]["packed"], expected["packed"])
            assert written[head]["packed gradients"] == pytest.approx(expected["packed gradients"], rel=1e-5)

    def test_a_changed_sequence_changes_no_other_at_all(self, runs, ranks, head):
        for written in runs[ranks]:
            pairs = zip(written[head]["packed"], written[head]["changed"], strict=True)
            assert [before == after for before, after in pairs] == [True, False, True, True]


@pytest.mark.parametrize("ranks", RANKS)
def test_plain_sdpa_would_be_wrong_without_a_word(runs, ranks):
    """The control: verl exchanges heads for tokens in flash attention only."""
    expected = runs[1][0]["None-language_model"]["packed"]
    found = runs[ranks][0]["control"]
    assert max(abs(a - b) for x, y in zip(found, expected, strict=True) for a, b in zip(x, y, strict=True)) > 1e-3


@pytest.mark.parametrize("ranks", RANKS)
def test_eager_with_sequence_parallelism_is_refused(runs, ranks):
    for written in runs[ranks]:
        assert written["eager"].startswith("UnsupportedModelSettingError: ulysses_sequence_parallel_size=")
