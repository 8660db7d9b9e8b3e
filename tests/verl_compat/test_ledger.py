# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Each row of the ledger is true of the installed verl: a private name that moved, or a gap that closed, is red."""

import ast
import textwrap
from importlib.metadata import version

import pytest
from packaging.requirements import Requirement

from verl_hw_core.upstream import LEDGER, LedgerRow

every_row = pytest.mark.parametrize("row", LEDGER, ids=lambda row: row.id)


# In a fork, so that verl is imported, and its platform fixed, in no process of pytest's own.
LOOK_UP = """
import importlib, inspect, sys, types
from pathlib import Path
import verl
# The package itself needs vLLM; the one module of it that is touched does not.
rollout = types.ModuleType("verl.workers.rollout.vllm_rollout")
rollout.__path__ = [str(Path(verl.__file__).parent / "workers" / "rollout" / "vllm_rollout")]
sys.modules[rollout.__name__] = rollout
found = {{}}
for row, target in {targets!r}.items():
    module, _, path = target.partition(":")
    try:
        value = importlib.import_module(module)
        for name in path.split("."):
            value = getattr(value, name)
        found[row] = [None, inspect.getsource(value) if inspect.isroutine(value) else ""]
    except (ImportError, AttributeError) as error:
        found[row] = [repr(error), ""]
answer(**found)
"""


@pytest.fixture(scope="module")
def targets(forks):
    """Of each row's target: why it cannot be reached, or None, and its source where it is a function."""
    rows = {row.id: row.target for row in LEDGER}
    return forks.run(LOOK_UP.format(targets={**rows, "control": "verl.plugin:no.such.name"}))


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
def test_the_target_exists(row: LedgerRow, targets):
    module, _, path = row.target.partition(":")
    assert module, "write the target as module:attribute.path"
    assert path, "write the target as module:attribute.path"
    missing, _ = targets[row.id]
    assert missing is None, f"verl moved {row.target}: our code and this row must follow ({missing})"
    assert "AttributeError" in targets["control"][0]


@every_row
def test_the_installed_version_is_one_that_the_row_was_read_in(row: LedgerRow):
    requirement = Requirement(row.versions)
    assert requirement.specifier, "without bounds a row never expires"
    installed = version(requirement.name)
    assert requirement.specifier.contains(installed, prereleases=True), (
        f"{row.id} was read in {row.versions}, installed is {installed}: read {row.target} again, "
        f"then widen the row or remove it ({row.removal})"
    )


@every_row
def test_the_row_says_why_where_and_until_when(row: LedgerRow):
    assert row.link.startswith("https://")
    assert len(row.reason.split()) >= 5
    assert len(row.removal.split()) >= 3


def test_verls_value_model_loader_still_asks_for_flash_attention_whatever_the_user_set(targets):
    (row,) = (row for row in LEDGER if row.id == "value-model-attention")
    _, source = targets[row.id]
    assert "flash_attention_2" in strings_in(source), f"the row is no longer needed: {row.removal}"


def test_a_comment_alone_would_not_keep_the_row():
    source = 'def mended():\n    """Was flash_attention_2."""\n    return "sdpa"  # flash_attention_2 before\n'
    assert strings_in(source) == {"sdpa"}
