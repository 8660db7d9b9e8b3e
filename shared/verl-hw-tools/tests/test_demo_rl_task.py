# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from verl_hw_tools.demo.rl.settings import ANSWERS_PER_PROMPT, PROMPTS_PER_STEP, RlSettings, write_data
from verl_hw_tools.demo.rl.task import ANSWER_LENGTH, LONGEST_PROMPT, compute_score, prompts
from verl_hw_tools.errors import DemoDataError


@pytest.mark.parametrize(
    ("answer", "kind", "reward"),
    [
        ("01234567", "digits", 1.0),
        ("abcdefgh", "letters", 1.0),
        ("abcdefgh", "digits", 0.0),
        ("12ab", "digits", 0.25),
        ("", "letters", 0.0),
        # Superscripts and capitals are other characters.
        ("²³ABCDEF", "digits", 0.0),
        ("²³ABCDEF", "letters", 0.0),
    ],
)
def test_the_reward_is_the_share_of_places_that_are_right(answer: str, kind: str, reward: float) -> None:
    assert compute_score("any", answer, kind, extra_info={"index": 1}, more=None) == reward


def test_no_answer_serves_both_kinds() -> None:
    answers = ("0123abcd", "00000000", "zzzzzzzz", "a1a1a1a1")
    assert all(compute_score("", answer, "digits") + compute_score("", answer, "letters") <= 1.0 for answer in answers)
    assert len(answers[0]) == ANSWER_LENGTH


def test_prompts_differ_name_their_kind_and_follow_the_seed() -> None:
    found = prompts(400, seed=1)
    assert found == prompts(400, seed=1) != prompts(400, seed=2)
    assert len({text for text, _ in found}) == 400
    assert all(text.partition(" ")[0] == kind for text, kind in found)
    counts = [sum(kind == wanted for _, kind in found) for wanted in ("digits", "letters")]
    assert min(counts) > 120
    # The chat template adds 2 turns with 24 tokens and the role's name.
    assert max(len(text) for text, _ in found) + 48 <= LONGEST_PROMPT


def test_more_prompts_than_there_are_is_an_error_not_an_endless_loop() -> None:
    with pytest.raises(DemoDataError, match="fewer --steps"):
        prompts(10**6, seed=0)


def test_data_files_are_what_verls_dataset_reads(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    settings = RlSettings(algorithm="grpo", steps=3, nodes=1, processes=2, seed=0)
    pairs = write_data(tmp_path, settings)
    rows = parquet.read_table(tmp_path / "train.parquet").to_pylist()
    assert len(rows) == len(pairs) == 3 * PROMPTS_PER_STEP
    text, kind = pairs[0]
    assert rows[0]["prompt"] == [{"role": "user", "content": text}]
    assert rows[0]["reward_model"] == {"style": "rule", "ground_truth": kind}
    assert [row["extra_info"]["index"] for row in rows] == list(range(len(rows)))
    held_out = {row["prompt"][0]["content"] for row in parquet.read_table(tmp_path / "held-out.parquet").to_pylist()}
    assert held_out
    assert not held_out & {text for text, _ in pairs}
    assert ANSWERS_PER_PROMPT > 1  # GRPO compares the answers to one prompt
