# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The walk through verl's settings speaks of every setting of the installed verl, and each verdict has its evidence."""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest
from verl_settings import ROOT, VERDICTS, rows, settings, verl_source

UNWALKED = 14
"""Settings without a verdict. It may only fall."""


def row_of(name: str):
    """The first row that speaks of a setting, which is the one that counts."""
    return next((row for row in rows() if row.matches(name)), None)


@pytest.fixture(scope="module")
def judged() -> dict:
    return {name: row_of(name) for name in settings()}


def test_every_setting_of_the_installed_verl_has_a_row(judged):
    assert len(judged) > 450
    missing = [f"{name} ({', '.join(settings()[name]) or 'dataclass only'})" for name, row in judged.items() if not row]
    assert missing == [], (
        "settings of verl that the walk does not know: add a row to tests/conformance/settings_walk.tsv"
    )


def test_every_row_speaks_of_a_setting(judged):
    used = {row.pattern for row in judged.values()}
    assert [row.pattern for row in rows() if row.pattern not in used] == []


def test_the_number_of_unwalked_settings_only_falls(judged):
    count = Counter(row.verdict for row in judged.values())
    assert set(count) <= set(VERDICTS)
    assert count["unwalked"] == UNWALKED, "fewer: lower UNWALKED; more: give the new ones a verdict"


def test_a_verdict_has_evidence_and_a_refusal_says_what_works(judged):
    for name, row in judged.items():
        assert bool(row.evidence) != (row.verdict == "unwalked"), name
        assert bool(row.cases) == (row.evidence == "walked"), name
        if row.verdict in ("refused", "not_ours"):
            assert row.words, name
        for case in row.cases:
            expected = re.match(r"(changes|same|refused)(@\d)?: ", case)
            assert expected, case
            assert (expected[1] == "refused") == (row.verdict == "refused"), name


def mentions(path: Path, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", path.read_text(encoding="utf-8")))


def readers(places: list[str], name: str) -> list[str]:
    """Files of verl below ``places``, its configuration left out, with the name as an attribute or a key."""
    source = verl_source()
    files = [
        file
        for place in places
        for file in ([source / place] if place.endswith(".py") else (source / place).rglob("*.py"))
    ]
    asked = re.compile(rf"""[.\"']{re.escape(name)}\b""")
    return [
        str(file.relative_to(source))
        for file in files
        if "config" not in file.relative_to(source).parts[:2] and asked.search(file.read_text(encoding="utf-8"))
    ]


def test_the_evidence_is_there(judged):
    core = Path(importlib.util.find_spec("verl_hw_core").origin).parent
    wrong = []
    for name, row in judged.items():
        field, (form, *words) = name.rsplit(".", 1)[-1], row.evidence.split() or ["unwalked"]
        if form == "read:":
            right = all(mentions(verl_source() / word, field) for word in words)
        elif form == "unread:":
            right = readers(words, field) == []
        elif form == "passed:":
            right = all(any(mentions(verl_source() / word, part) for part in name.split(".")[1:-1]) for word in words)
        elif form == "ours:":
            right = all(mentions(core / word, field) for word in words)
        elif form in ("walked", "unwalked"):
            right = not words
        else:
            path, _, test = form.partition("::")
            right = f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")
        if not right:
            wrong.append(f"{name}: {row.evidence}")
    assert wrong == []
