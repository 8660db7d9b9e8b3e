#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Write the tables of docs/settings.md from the walk through verl's settings; a test compares them."""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from verl_settings import ROOT, VERDICTS, Row, rows, settings

from devlib.marked_sections import renewed

DOCUMENT = ROOT / "docs" / "settings.md"
_MEANING = {
    "right": "its effect is that of verl on a plain CPU, or a test shows what it does",
    "no_effect_on_numbers": "losses, gradients and weights are the same whatever it says",
    "refused": "a value that could not be right ends the run before it trains",
    "not_ours": "another package's or the driver's: vLLM, SGLang, Megatron-Bridge, agent loops",
    "unwalked": "not judged yet",
}


def counts() -> str:
    """How many settings have which verdict."""
    found = Counter(_row_of(name).verdict for name in settings())
    lines = [f"| {word.replace('_', ' ')} | {found[word]} | {_MEANING[word]} |" for word in VERDICTS]
    return "\n".join(
        ["| verdict | settings | meaning |", "| --- | --- | --- |", *lines, f"| all | {sum(found.values())} | |"]
    )


def refused() -> str:
    """What is refused, and what to set instead."""
    return _table("refused", "setting", "instead")


def without_effect() -> str:
    """What changes no number though its name may suggest it."""
    return _table("no_effect_on_numbers", "setting", "why")


def _table(verdict: str, *heads: str) -> str:
    lines = [f"| `{_shown(row)}` | {row.words} |" for row in rows() if row.verdict == verdict and row.words]
    return "\n".join([f"| {' | '.join(heads)} |", "| --- | --- |", *sorted(lines)])


def _shown(row: Row) -> str:
    return str(row.pattern).replace("*ActorConfig", "ActorConfig").replace("*CriticConfig", "CriticConfig")


def _row_of(name: str) -> Row:
    return next(row for row in rows() if row.matches(name))


def document(text: str) -> str:
    """Return the document with its sections renewed."""
    return renewed(text, Path(__file__).name, lambda name: globals()[name]())


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
