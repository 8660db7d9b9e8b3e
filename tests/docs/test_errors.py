# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Errors that the guides explain have the exact text of our code; ``...`` stands for what differs."""

import ast
import re

import pytest
from documents import ROOT, blocks

GAP = "\0"


def _literals() -> list[str]:
    """Every string of our code; values that are put in at run time are a gap."""
    found = []
    for path in [*ROOT.glob("shared/*/src/**/*.py"), *ROOT.glob("packages/*/src/**/*.py")]:
        found += _texts(ast.parse(path.read_text(encoding="utf-8")))
    return found


def _texts(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else GAP for part in node.values]
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(re.sub(r"%[srd]", GAP, node.value))
    return found


LITERALS = _literals()
QUOTES = [
    (block.where, line)
    for page in [ROOT / "docs" / "fragments" / "faq.md"]
    for block in blocks(page)
    if block.language == "text"
    for line in block.text.splitlines()
]


def is_ours(quote: str) -> bool:
    """Whether one string of our code is the quotation, with its gaps anywhere."""
    pieces = [piece for piece in re.split(r"\.{3,}", quote) if piece.strip()]
    pattern = re.compile(".*".join(map(re.escape, pieces)), re.DOTALL)
    return bool(pieces) and any(pattern.search(text) for text in LITERALS)


@pytest.mark.parametrize(("where", "quote"), QUOTES)
def test_the_text_is_ours(where, quote):
    assert is_ours(quote), f"{where}: no such text in the code"


def test_another_text_is_not():
    assert not is_ours("... needs verl>=... (its plug-in interface), found ...")


def test_there_are_quotations():
    assert len(QUOTES) > 20
