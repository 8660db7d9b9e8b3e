# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Replacing names of other people's modules is idempotent, reversible and recorded."""

from types import SimpleNamespace

import pytest

from verl_hw_core import upstream

ROW, OTHER_ROW = (row.id for row in upstream.LEDGER[:2])


@pytest.fixture
def owner():
    yield (module := SimpleNamespace(name="torch's own", other="untouched"))
    upstream.restore(ROW)
    assert vars(module) == {"name": "torch's own", "other": "untouched"}


def test_replaced_once_and_put_back(owner):
    upstream.replace(ROW, owner, "name", "ours")
    upstream.replace(ROW, owner, "name", "ours again")
    assert owner.name == "ours"
    assert upstream.original(ROW, owner, "name") == "torch's own"
    assert upstream.in_force() == (ROW,)
    upstream.restore(ROW)
    assert (owner.name, upstream.in_force()) == ("torch's own", ())


def test_restoring_another_row_changes_nothing(owner):
    upstream.replace(ROW, owner, "name", "ours")
    upstream.restore(OTHER_ROW)
    assert owner.name == "ours"


def test_original_of_what_nobody_replaced(owner):
    assert upstream.original(ROW, owner, "other") == "untouched"


def test_a_change_without_a_ledger_row_is_refused(owner):
    with pytest.raises(LookupError, match="no row 'unheard-of'"):
        upstream.replace("unheard-of", owner, "name", "ours")
