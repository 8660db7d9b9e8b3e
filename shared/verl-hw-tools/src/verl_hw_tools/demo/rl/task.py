# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A task that can be verified without a model, and that a tiny random model learns in minutes.

A prompt asks for digits or for letters; the reward of an answer is the share of its :data:`ANSWER_LENGTH` characters
that are of the kind asked for. A policy that ignores the prompt gets at most half, so a high reward means that prompts
arrive, that rewards go back to the right ones, and that the gradients are those of the answers that were given.
"""

import random
import string
from pathlib import Path
from typing import Any

from verl_hw_tools.errors import DemoDataError

ANSWER_LENGTH = 8
"""Tokens of an answer; with the demo's tokenizer one token is one byte."""

LONGEST_PROMPT = 64
DATA_SOURCE = "verl-hw/digits-or-letters"
DESCRIPTION = (
    f"answer with digits or with letters, as the prompt asks; reward: the share of the answer's {ANSWER_LENGTH} "
    "characters that are of that kind"
)

_KINDS = {"digits": frozenset(string.digits), "letters": frozenset(string.ascii_lowercase)}
_WORD_LENGTH = 3
_MOST_PROMPTS = len(_KINDS) * len(string.ascii_lowercase) ** _WORD_LENGTH


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any
) -> float:  # verl's signature of a custom reward function
    """Return the share of the answer's places that hold a character of the kind ``ground_truth``."""
    return sum(character in _KINDS[ground_truth] for character in solution_str) / ANSWER_LENGTH


def prompts(count: int, seed: int) -> list[tuple[str, str]]:
    """Return ``count`` different prompts, each with the kind that it asks for, in an order that the seed decides.

    Raises:
        DemoDataError: There are not so many.
    """
    if count > _MOST_PROMPTS:
        raise DemoDataError(f"the demo's task has {_MOST_PROMPTS} prompts, {count} are wanted: ask for fewer --steps")
    choose = random.Random(seed)  # noqa: S311 - a reproducible choice, no secret
    found: dict[str, str] = {}
    while len(found) < count:
        kind = choose.choice(tuple(_KINDS))
        word = "".join(choose.choices(string.ascii_lowercase, k=_WORD_LENGTH))
        # The word only makes prompts differ: the answer must not depend on it.
        found[f"{kind} {word}"] = kind
    return list(found.items())


def write_prompts(path: Path, pairs: list[tuple[str, str]]) -> None:
    """Write prompts as a parquet file in the form that verl's RL dataset reads."""
    import pyarrow
    from pyarrow import parquet

    rows = [
        {
            "data_source": DATA_SOURCE,
            "prompt": [{"role": "user", "content": text}],
            "ability": "verl-hw",
            "reward_model": {"style": "rule", "ground_truth": kind},
            "extra_info": {"index": number},
        }
        for number, (text, kind) in enumerate(pairs)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        parquet.write_table(pyarrow.Table.from_pylist(rows), file)
