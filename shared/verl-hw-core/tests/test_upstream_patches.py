# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Replacing names of other people's modules is declared, guarded, idempotent, reversible and recorded."""

import importlib
import inspect
import logging
import sys
import threading
from types import ModuleType

import pytest
from cloudpickle import dumps, loads

from verl_hw_core import load_report, upstream
from verl_hw_core.errors import UpstreamPatchError
from verl_hw_core.upstream import installed_state, patches, references

ROW, OTHER_ROW = "acme", "acme-other"
SOURCE = """
def work(): return "own"
alias = work
def reads_it(): return unset
class Layer:
    def __init__(self): self._options = {}
    @staticmethod
    def forward(): return "own"
    def method(self, value): return ("own", value)
class Child(Layer): pass
"""


def row(**facts):
    return upstream.LedgerRow(**{"id": ROW, "reason": "", "lost": "speed", "link": "", "removal": "", **facts})


@pytest.fixture
def declare(monkeypatch):
    """Put rows into the ledger for a test, and take back what they did."""
    rows = dict(patches._rows)
    monkeypatch.setattr(patches, "_rows", rows)
    monkeypatch.setattr(patches, "_failures", {})
    monkeypatch.setattr(load_report, "_problems", [])
    made = []

    def put(**facts):
        made.append(row(**facts))
        rows[made[-1].id] = made[-1]

    yield put
    for one in made:
        upstream.restore(one.id)


@pytest.fixture
def owner(monkeypatch, declare):
    module = ModuleType("acme_module")
    vars(module).update(name="torch's own", other="untouched")
    before = dict(vars(module))
    monkeypatch.setitem(sys.modules, "acme_module", module)
    declare(targets=("acme_module:name",))
    declare(id=OTHER_ROW, targets=("acme_module:other",))
    yield module
    upstream.restore(ROW)
    assert vars(module) == before


@pytest.fixture
def library(tmp_path, monkeypatch, declare):
    """An importable module with functions and classes."""
    (tmp_path / "acme_library.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("work", "alias", "Layer.forward", "Layer.method")
    declare(targets=tuple(f"acme_library:{name}" for name in names))
    yield importlib.import_module("acme_library")
    upstream.restore(ROW)
    del sys.modules["acme_library"]


def test_replaced_once_and_put_back(owner):
    before = set(patches.replaced())  # other tests of this process
    upstream.replace(ROW, owner, "name", "ours")
    upstream.replace(ROW, owner, "name", "ours again")
    assert owner.name == "ours"
    assert upstream.original(ROW, owner, "name") == "torch's own"
    assert set(patches.replaced()) == {*before, ROW}
    assert patches.replaced()[ROW] == {"acme_module:name"}
    upstream.restore(ROW)
    assert (owner.name, set(patches.replaced())) == ("torch's own", before)


def test_what_is_in_force_is_said_in_the_ledgers_order():
    first, last = upstream.LEDGER[0].id, upstream.LEDGER[-1].id
    held = patches._Replaced(None, "", None, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patches, "_replaced", {(last, "a:b"): held, (first, "a:b"): held})
        patch.setattr(patches, "_kernels", {})
        assert upstream.in_force() == (first, last)


def test_restoring_another_row_changes_nothing(owner):
    upstream.replace(ROW, owner, "name", "ours")
    upstream.restore(OTHER_ROW)
    assert owner.name == "ours"


def test_original_of_what_nobody_replaced(owner):
    assert upstream.original(ROW, owner, "other") == "untouched"


def test_a_change_without_a_ledger_row_is_refused(owner):
    with pytest.raises(LookupError, match="no row 'unheard-of'"):
        upstream.replace("unheard-of", owner, "name", "ours")


def test_a_name_that_the_row_does_not_declare_is_refused(owner, library):
    for place, name in ((owner, "other"), (library.Layer, "name"), (library, "reads_it")):
        with pytest.raises(LookupError, match=rf"row 'acme' does not declare .*{name}: add it to its targets"):
            upstream.replace(ROW, place, name, "ours")
    with pytest.raises(LookupError, match="does not declare aten::topk"):
        upstream.add_kernel(ROW, "aten::topk", "cpu", print)
    with pytest.raises(LookupError, match="does not declare acme_library:inner"):
        patches.replace_module(ROW, "acme_library.inner", ModuleType("inner"))


def test_a_name_that_packages_declare_is_declared(library, declare, monkeypatch):
    declare(more_targets="acme_declarations:targets")
    monkeypatch.setitem(sys.modules, "acme_declarations", module := ModuleType("acme_declarations"))
    module.targets = lambda: ("acme_absent:Layer.method", "acme_library:Absent.method", "acme_library:Layer.method")
    upstream.replace(ROW, library.Layer, "method", ours)
    assert patches.replaced()[ROW] == {"acme_library:Layer.method"}


def test_a_declared_name_that_is_not_there_is_a_lookup_error_and_nothing_is_made(library, declare):
    declare(targets=("acme_library:unmade",))
    with pytest.raises(LookupError, match="there is no acme_library:unmade"):
        upstream.replace(ROW, library, "unmade", "ours")
    assert not hasattr(library, "unmade")


def test_a_name_that_may_be_absent_is_made_and_taken_away(library, declare):
    declare(targets=("acme_library:unset",), may_be_absent=True)
    upstream.replace(ROW, library, "unset", "ours")
    assert library.reads_it() == "ours"
    assert upstream.original(ROW, library, "unset") is None
    upstream.restore(ROW)
    assert not hasattr(library, "unset")


@pytest.mark.parametrize(
    ("facts", "absent"),
    [
        ({"targets": ("acme_library:work", "acme_library:gone", "acme_gone:x")}, ["acme_library:gone", "acme_gone:x"]),
        ({"targets": ("acme_library:Child.method",)}, ["acme_library:Child.method"]),  # it is inherited
        ({"reads": ("acme_library:Child.method", "acme_library:Layer()._options")}, []),
        ({"reads": ("acme_library:Layer._options", "acme_library:Layer()._gone")}, None),
        ({"targets": ("acme_library:unset", "acme_library:gone"), "may_be_absent": True}, ["acme_library:gone"]),
        ({"targets": ("torch:gone; torch>=99", "torch:gone; torch<99")}, ["torch:gone"]),
        ({"targets": ("verl_hw_core.upstream:patches", "verl_hw_core.upstream:gone")}, ["verl_hw_core.upstream:gone"]),
    ],
)
def test_what_is_missing(library, facts, absent):
    wanted = list(facts["reads"]) if absent is None else absent
    assert list(installed_state.missing(row(**facts))) == wanted


@upstream.replaces(ROW, "acme_library:work", "acme_library:alias")
def work(own):
    return "ours", own()


@upstream.replaces(ROW, "acme_library:Layer.forward")
def forward(own):
    return "ours", own()


@upstream.replaces(ROW, "acme_library:Layer.method")
def method(own, layer, value):
    return "ours", own(layer, value)


def test_a_replacement_gets_what_it_replaces(library):
    upstream.apply(ROW)
    assert (library.work(), library.Layer.forward()) == (("ours", "own"),) * 2
    assert library.Layer().method(3) == ("ours", ("own", 3))
    assert list(inspect.signature(library.Layer.method).parameters) == ["layer", "value"]
    upstream.restore(ROW)
    assert (library.work(), library.Layer.forward(), library.Layer().method(3)) == ("own", "own", ("own", 3))


OURS = {"work": work, "forward": forward}


@pytest.mark.parametrize("of", [lambda library: (library, "work"), lambda library: (library.Layer, "forward")])
def test_what_is_replaced_travels_as_a_reference(library, of, monkeypatch):
    owner, name = of(library)
    own = getattr(owner, name)
    before = own.__module__, own.__qualname__
    names = OURS[name].__module__, OURS[name].__qualname__
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or ModuleType(__name__))
    monkeypatch.setattr(sys.modules[__name__], name, OURS[name], raising=False)
    assert upstream.apply(ROW)
    replaced = getattr(owner, name)
    sent = dumps(replaced)
    assert (replaced(), own()) == (("ours", "own"), "own")
    assert replaced is OURS[name]
    assert (replaced.__module__, replaced.__qualname__) == names == (__name__, name)  # nobody renamed it
    assert loads(sent) is replaced
    assert loads(dumps(own)) is own

    upstream.restore(ROW)
    assert (own.__module__, own.__qualname__) == before
    arrived = loads(sent)  # as in a process without the replacement
    assert arrived() == "own"
    assert loads(dumps(arrived)) is arrived
    setattr(owner, name, lambda: "put there after it arrived")
    assert arrived() == "put there after it arrived"


def ours():
    return "ours"


@pytest.mark.parametrize("of", [lambda library: (library, "work"), lambda library: (library.Layer, "forward")])
def test_a_function_that_is_nobodys_by_name_travels_by_a_stand_in(library, of):
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


def test_one_replacement_under_two_names_stays_one_object(library, monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or ModuleType(__name__))
    monkeypatch.setattr(sys.modules[__name__], "work", work, raising=False)
    upstream.apply(ROW)
    replaced = library.work
    assert library.alias is replaced
    assert loads(dumps(replaced)) is replaced


def test_no_other_name_is_an_attribute():
    for name in ("nothing", "a b c d", "row foreign acme_library:work", "foreign row acme_library:work"):
        with pytest.raises(AttributeError, match="has no attribute"):
            getattr(references, name)


def test_rows_that_a_reference_applies_name_a_function():
    targets = [row.applied_by for row in upstream.LEDGER if row.applied_by]
    assert targets
    for target in targets:
        module, _, name = target.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), target


@upstream.applies(ROW)
def apply_all(library, error=None):
    patches.put(ROW)
    if error:
        raise error


def only_line(caplog):
    (line,) = (record.getMessage() for record in caplog.records)
    return line


def test_a_name_that_is_missing_is_one_warning_and_nothing_is_replaced(library, declare, caplog):
    declare(targets=("acme_library:work", "acme_library:unmade"), reads=("acme_library:gone",))
    with caplog.at_level(logging.WARNING):
        assert not apply_all(library)
        assert not apply_all(library)
    line = only_line(caplog)
    assert "upstream patch acme: acme_library without version has no acme_library:unmade and " in line
    assert "acme_library without version has no acme_library:gone: speed. Upgrade verl-hw-core" in line
    assert library.work() == "own"
    patches.require_applied()  # only a warning


@pytest.mark.parametrize("error", [KeyError("_init_buffer"), TypeError("another signature")])
def test_whatever_fails_is_one_warning_and_what_was_replaced_is_put_back(library, declare, caplog, error):
    declare(targets=("acme_library:work",))
    assert not apply_all(library, error)
    assert f"upstream patch acme: {load_report.describe(error)}: speed" in only_line(caplog)
    assert library.work() == "own"
    assert load_report.problems()[0].traceback
    assert apply_all(library)
    assert library.work() == ("ours", "own")


def test_wrong_numbers_are_refused_by_name_until_the_row_is_applied(library, declare, monkeypatch):
    declare(targets=("acme_library:gone",), if_missing="refuse")
    assert not upstream.check(ROW)
    with pytest.raises(UpstreamPatchError, match=r"upstream patch acme: .* has no acme_library:gone: speed"):
        upstream.require_applied()
    library.gone = "there"
    assert upstream.check(ROW)
    upstream.require_applied()


def test_a_step_that_failed_is_not_forgotten_when_another_one_of_its_row_goes_well(library, declare):
    declare(targets=("acme_library:work",), if_missing="refuse")

    @upstream.applies(ROW)
    def step(name, error=None):
        if error:
            raise error

    assert not step("first", RuntimeError("no kernel"))
    assert step("second")
    assert upstream.check(ROW)
    with pytest.raises(UpstreamPatchError, match="no kernel"):
        upstream.require_applied()
    assert step("first")
    upstream.require_applied()


def test_a_row_whose_functions_were_not_imported_is_not_called_applied(library, declare, monkeypatch):
    declare(targets=("acme_library:work",), if_missing="refuse")
    monkeypatch.delitem(patches._ours, ROW)
    assert not upstream.apply(ROW)
    with pytest.raises(UpstreamPatchError, match="no function of an imported module replaces"):
        upstream.require_applied()


def test_a_row_that_was_put_back_stays_so_whoever_still_holds_its_function(library, declare, monkeypatch):
    declare(targets=("acme_library:work",), applied_by="acme_unheard_of:apply")
    monkeypatch.setattr(patches, "_call", lambda reference: upstream.apply(ROW))
    upstream.apply(ROW)
    held = library.work
    upstream.restore(ROW)
    assert held() == "own"
    assert ROW not in patches.replaced()


def test_threads_that_apply_a_row_together_replace_once(library, declare):
    declare(targets=("acme_library:work",))
    own = library.work
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            threads = [threading.Thread(target=upstream.apply, args=(ROW,)) for _ in range(4)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            assert library.work() == ("ours", "own")
            upstream.restore(ROW)
            assert library.work is own
    finally:
        sys.setswitchinterval(before)


def test_what_only_rays_workers_need_is_refused_there(library, declare, monkeypatch):
    declare(reads=("acme_library:gone",), if_missing="refuse in Ray")
    upstream.check(ROW)
    ray = ModuleType("ray")
    monkeypatch.setitem(sys.modules, "ray", ray)
    ray.is_initialized = lambda: False
    upstream.require_applied()
    ray.is_initialized = lambda: True
    with pytest.raises(UpstreamPatchError, match="acme_library:gone"):
        upstream.require_applied()


def test_a_row_whose_needs_are_missing_is_not_applied(library, declare):
    declare(targets=("acme_library:work",))
    declare(id=OTHER_ROW, reads=("acme_library:gone",))
    assert not upstream.apply(ROW, OTHER_ROW)
    assert library.work() == "own"


def test_a_row_whose_needs_failed_is_not_applied(library, declare):
    declare(targets=("acme_library:work",))
    declare(id=OTHER_ROW, reads=("acme_library:work",))

    @upstream.applies(OTHER_ROW)
    def fail():
        raise RuntimeError

    assert not fail()
    assert not upstream.apply(ROW, OTHER_ROW)
    assert library.work() == "own"


def test_a_hook_that_fails_does_not_stop_the_import(tmp_path, monkeypatch, declare, caplog):
    (tmp_path / "acme_late.py").write_text("done = True")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []

    def fail(module):
        seen.append(module.done)
        raise KeyError("name")

    upstream.when_imported("acme_late", fail)
    upstream.when_imported("acme_late", fail, lambda: False)
    assert importlib.import_module("acme_late").done
    del sys.modules["acme_late"]
    assert seen == [True]
    assert "after the import of acme_late: KeyError: 'name'. Upgrade verl-hw-core" in only_line(caplog)
