# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The SFT demo's text: questions about names of this project and their answers, from the file ``sentences.tsv``."""

import random
from dataclasses import dataclass
from importlib.resources import files

from verl_hw_tools.errors import DemoDataError

LONGEST_PAIR = 160
"""Characters of a question and its answer together: one byte is one token, so this bounds a sequence's length."""

QUESTIONS = ("What does {} do?", "What is {} for?", "Say in one sentence what {} is about.")


@dataclass(frozen=True)
class Pair:
    """One question and its answer."""

    question: str
    answer: str


def collect_pairs(count: int, seed: int) -> list[Pair]:
    """Return ``count`` different pairs; the same seed gives the same pairs in the same order.

    Raises:
        DemoDataError: There are not so many.
    """
    lines = files(__package__).joinpath("sentences.tsv").read_text(encoding="utf-8").splitlines()
    random.Random(seed).shuffle(lines)  # noqa: S311 - a reproducible order, no secret
    known = [line.split("\t") for line in lines]
    # Every sentence once before any comes again, so that a run of usual length holds out answers it never trains on.
    pairs = [Pair(form.format(name), sentence) for form in QUESTIONS for name, sentence in known]
    if len(pairs) < count:
        raise DemoDataError(f"the demo has {len(pairs)} questions, {count} are wanted: ask for fewer --steps")
    return pairs[:count]
