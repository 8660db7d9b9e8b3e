# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Replacing names of other people's modules is idempotent, reversible and recorded."""

import importlib
import sys
from types import SimpleNamespace

import pytest
from cloudpickle import dumps, loads

from verl_hw_core import upstream
from verl_hw_core.upstream import references

ROW, OTHER_ROW = (row.id for row in upstream.LEDGER[:2])


@pytest.fixture
def owner():
    yield (module := SimpleNamespace(name="torch's own", other="untouched"))
    upstream.restore(ROW)
    assert vars(module) == {"name": "torch's own", "other": "untouched"}


def test_replaced_once_and_put_back(owner):
    before = upstream.in_force()  # other tests of this process
    upstream.replace(ROW, owner, "name", "ours")
    upstream.replace(ROW, owner, "name", "ours again")
    assert owner.name == "ours"
    assert upstream.original(ROW, owner, "name") == "torch's own"
    assert set(upstream.in_force()) == {*before, ROW}
    upstream.restore(ROW)
    assert (owner.name, upstream.in_force()) == ("torch's own", before)


def test_restoring_another_row_changes_nothing(owner):
    upstream.replace(ROW, owner, "name", "ours")
    upstream.restore(OTHER_ROW)
    assert owner.name == "ours"


def test_original_of_what_nobody_replaced(owner):
    assert upstream.original(ROW, owner, "other") == "untouched"


def test_a_change_without_a_ledger_row_is_refused(owner):
    with pytest.raises(LookupError, match="no row 'unheard-of'"):
        upstream.replace("unheard-of", owner, "name", "ours")


def ours():
    return "ours"


@pytest.fixture
def library(tmp_path, monkeypatch):
    """An importable module with a function and a class."""
    source = "def work(): return 'own'\nclass Layer:\n    @staticmethod\n    def forward(): return 'own'"
    (tmp_path / "acme_library.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("acme_library")
    upstream.restore(ROW)
    del sys.modules["acme_library"]


@pytest.mark.parametrize("of", [lambda library: (library, "work"), lambda library: (library.Layer, "forward")])
def test_what_is_replaced_travels_as_a_reference(library, of):
    owner, name = of(library)
    own = getattr(owner, name)
    before = own.__module__, own.__qualname__
    upstream.replace(ROW, owner, name, staticmethod(ours) if owner is library.Layer else ours)
    replaced = getattr(owner, name)
    sent = dumps(replaced)
    assert (replaced(), own()) == ("ours", "own")
    assert loads(sent) is replaced
    assert loads(dumps(own)) is own
    assert loads(dumps(ours)) is ours

    upstream.restore(ROW)
    assert (own.__module__, own.__qualname__) == before
    arrived = loads(sent)  # as in a process without the replacement
    assert arrived() == "own"
    assert loads(dumps(arrived)) is arrived
    setattr(owner, name, lambda: "put there after it arrived")
    assert arrived() == "put there after it arrived"


def test_one_replacement_under_two_names_stays_one_object(library):
    library.alias = library.work

    def replacement():
        return "ours"

    for name in ("work", "alias"):
        upstream.replace(ROW, library, name, replacement)
    replaced = library.work
    assert library.alias is replaced
    assert loads(dumps(replaced)) is replaced


def test_no_other_name_is_an_attribute():
    for name in ("nothing", "a b c d", "row foreign acme_library:work"):
        with pytest.raises(AttributeError, match="has no attribute"):
            getattr(references, name)


def test_rows_that_a_reference_applies_name_a_function():
    targets = [row.applied_by for row in upstream.LEDGER if row.applied_by]
    assert targets
    for target in targets:
        module, _, name = target.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), target
