# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The table of what was tried names tests that are there and that name the chip."""

import re

import pytest
from documents import ROOT

VENDORS = ("cambricon", "enflame", "intel", "metax")
TEXT = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("|") and "`tests/" in line
]


def test_there_are_rows():
    assert len(ROWS) > 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_is_said_to_be_tried_has_a_test(row):
    _what, *cells, test = row
    assert len(cells) == len(VENDORS)
    code = (ROOT / test.strip("`")).read_text(encoding="utf-8")
    tried = [vendor for vendor, cell in zip(VENDORS, cells, strict=True) if cell]
    assert tried
    assert [vendor for vendor in tried if not re.search(rf'"{vendor}[":]', code)] == []


def test_no_chip_is_said_to_be_measured_without_a_results_file():
    sent = list((ROOT / "docs" / "measured").glob("*.json"))
    assert ("**Nothing on hardware.**" in TEXT) == (not sent)
