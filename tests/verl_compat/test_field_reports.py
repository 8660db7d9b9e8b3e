# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""docs/field_reports.md names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = sorted(set(re.findall(r"`([\w/-]+\.py)::(\w+)`", (ROOT / "docs/field_reports.md").read_text(encoding="utf-8"))))


def test_the_page_names_tests():
    assert len(NAMED) > 30


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_the_named_test_exists(file, name):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
