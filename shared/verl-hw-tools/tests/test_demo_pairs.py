# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import pytest

from verl_hw_tools.demo.pairs import LONGEST_PAIR, collect_pairs
from verl_hw_tools.demo.sft_config import SftSettings
from verl_hw_tools.errors import DemoDataError

LONGEST_RUN = SftSettings(steps=300, processes=2, strategy="fsdp2", seed=0)


def test_there_are_enough_questions_for_the_longest_run_each_once_and_none_too_long() -> None:
    pairs = collect_pairs(LONGEST_RUN.pairs, seed=0)
    assert len(set(pairs)) == LONGEST_RUN.pairs
    assert all(pair.question and len(pair.answer) >= 16 for pair in pairs)
    assert all((pair.question + pair.answer).isascii() for pair in pairs)
    assert all((pair.question + pair.answer).isprintable() for pair in pairs)
    assert max(len(pair.question + pair.answer) for pair in pairs) <= LONGEST_PAIR


def test_same_seed_same_pairs_and_another_seed_other_pairs() -> None:
    assert (three := collect_pairs(60, seed=3)) == collect_pairs(60, seed=3)
    assert three != collect_pairs(60, seed=4)


def test_an_answer_is_used_once_in_a_run_of_usual_length() -> None:
    pairs = collect_pairs(1000, seed=0)
    assert len({pair.answer for pair in pairs}) == 1000


def test_too_little_text_is_an_error_with_the_numbers() -> None:
    with pytest.raises(DemoDataError, match=r"has \d+ questions, 100000 are wanted: ask for fewer --steps"):
        collect_pairs(100_000, seed=0)
