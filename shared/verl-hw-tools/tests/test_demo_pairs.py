# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

from verl_hw_tools.demo.pairs import LONGEST_PAIR, collect_pairs, first_sentence
from verl_hw_tools.errors import DemoDataError


def test_the_running_python_gives_real_questions_without_being_imported() -> None:
    before = set(sys.modules)
    pairs = collect_pairs(200, seed=0)
    assert len(pairs) == 200
    assert all(pair.question.startswith("What does ") and pair.question.endswith(" do?") for pair in pairs)
    assert all(len(pair.question + pair.answer) <= LONGEST_PAIR for pair in pairs)
    assert len({pair.answer for pair in pairs}) == 200
    assert set(sys.modules) == before


def test_same_seed_same_pairs_and_another_seed_other_pairs() -> None:
    assert (three := collect_pairs(60, seed=3)) == collect_pairs(60, seed=3)
    assert three != collect_pairs(60, seed=4)


def test_an_answer_is_used_once(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('def f():\n    """Do the same thing."""\ndef g():\n    """Do the same thing."""\n')
    with pytest.raises(DemoDataError, match="found 1"):
        collect_pairs(2, seed=0, library=tmp_path)


def test_only_public_documented_names_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "posixpath.py").write_text(
        'def join():\n    """Join two or more path components. More."""\n'
        'def _hidden():\n    """This is not a public function."""\n'
        "def silent(): pass\n"
        'class Walker:\n    """Walks through all the folders."""\n'
        '    def step(self):\n        """Take one step further down.\n\n        Details."""\n'
    )
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_it.py").write_text('def run():\n    """Run everything that is here."""\n')
    pairs = {pair.question: pair.answer for pair in collect_pairs(3, seed=0, library=tmp_path)}
    assert pairs == {
        "What does os.path.join do?": "Join two or more path components.",
        "What does os.path.Walker do?": "Walks through all the folders.",
        "What does os.path.Walker.step do?": "Take one step further down.",
    }


def test_too_little_text_is_an_error_with_the_numbers(tmp_path: Path) -> None:
    with pytest.raises(DemoDataError, match=r"needs 5 questions .* found 0: ask for fewer --steps"):
        collect_pairs(5, seed=0, library=tmp_path)


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("Join paths. Then more.", "Join paths."),
        ("Split over\n    two lines.\n\nDetails.", "Split over two lines."),
        ("Read version 1.2 of it. More", "Read version 1.2 of it."),
        ("no full stop", ""),
    ],
)
def test_first_sentence(docstring: str, sentence: str) -> None:
    assert first_sentence(docstring) == sentence
