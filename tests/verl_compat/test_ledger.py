# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Each row of the ledger is true of the installed verl: a private name that moved, or a gap that closed, is red."""

import ast
import re
import textwrap
from importlib.metadata import version

import pytest
from packaging.requirements import Requirement

from verl_hw_core.upstream import LEDGER, LedgerRow
from verl_hw_core.upstream.installed_state import requirements

every_row = pytest.mark.parametrize("row", LEDGER, ids=lambda row: row.id)


# In a fork, so that verl is imported, and its platform fixed, in no process of pytest's own.
LOOK_UP = """
import inspect, types
from pathlib import Path
import verl
# The package itself needs vLLM; the one module of it that is touched does not.
rollout = types.ModuleType("verl.workers.rollout.vllm_rollout")
rollout.__path__ = [str(Path(verl.__file__).parent / "workers" / "rollout" / "vllm_rollout")]
sys.modules[rollout.__name__] = rollout
from verl.utils.model import load_valuehead_model
from verl_hw_core.upstream import LEDGER, LedgerRow
from verl_hw_core.upstream.installed_state import applicable, missing
facts = dict(reason="", lost="", link="", removal="")
control = LedgerRow(id="control", targets=("verl.plugin:no.such.name",), reads=("verl.no:name", "verl:name"), **facts)
answer(
    missing={row.id: missing(row) for row in (*LEDGER, control)}, loader=inspect.getsource(load_valuehead_model),
    looked_up={row.id: [*applicable(row.targets), *applicable(row.reads)] for row in LEDGER},
)
"""


@pytest.fixture(scope="module")
def installed(forks):
    """Of each row: the names that the installed packages do not have, and those that were looked up."""
    return forks.run(LOOK_UP)


def strings_in(source: str) -> set[str]:
    """String constants in a function's code; its docstring and comments do not count."""
    (definition,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(definition, ast.FunctionDef)
    body = definition.body[1:] if ast.get_docstring(definition) else definition.body
    return {
        node.value
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_ids_are_unique_and_there_are_rows():
    assert LEDGER
    assert len({row.id for row in LEDGER}) == len(LEDGER)


@every_row
def test_the_target_exists(row: LedgerRow, installed):
    assert row.targets or row.reads
    for name in (*row.targets, *row.reads):
        assert re.fullmatch(r"[\w.]+:[\w.()]+(; [\w-]+[<>=].+)?", name), "write names as module:attribute.path"
    assert installed["missing"][row.id] == [], f"{row.id}: our code and this row must follow what moved"
    assert installed["looked_up"][row.id] == [name.partition(";")[0] for name in (*row.targets, *row.reads)]


def test_a_name_that_is_not_there_would_be_seen(installed):
    assert installed["missing"]["control"] == ["verl.plugin:no.such.name", "verl.no:name", "verl:name"]


@every_row
def test_the_installed_version_is_one_that_the_row_was_read_in(row: LedgerRow):
    for requirement in map(Requirement, requirements(row)):
        assert requirement.specifier, "without bounds in tested_versions.json a row never expires"
        installed = version(requirement.name)
        assert requirement.specifier.contains(installed, prereleases=True), (
            f"{row.id} was read in {requirement}, installed is {installed}: read its names again, then widen the "
            f"bounds or remove the row ({row.removal})"
        )


@every_row
def test_the_link_leads_to_a_thread_or_a_line(row: LedgerRow):
    assert re.fullmatch(
        r"https://github\.com/[\w.-]+/[\w.-]+/((pull|issues)/\d+|blob/(v[\w.]+|[0-9a-f]{40})/.+#L\d+)", row.link
    ), "a thread, or a line at a tag or commit"


@every_row
def test_the_row_says_why_where_and_until_when(row: LedgerRow):
    assert row.link.startswith("https://")
    assert len(row.reason.split()) >= 5
    assert len(row.removal.split()) >= 3
    assert len(row.lost.split()) >= 4


def test_verls_value_model_loader_still_asks_for_flash_attention_whatever_the_user_set(installed):
    (row,) = (row for row in LEDGER if row.id == "value-model-attention")
    assert "flash_attention_2" in strings_in(installed["loader"]), f"the row is no longer needed: {row.removal}"


def test_a_comment_alone_would_not_keep_the_row():
    source = 'def mended():\n    """Was flash_attention_2."""\n    return "sdpa"  # flash_attention_2 before\n'
    assert strings_in(source) == {"sdpa"}
