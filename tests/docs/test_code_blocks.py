# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Code in the documents can be read, and what it imports of ours is there."""

import ast
import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from documents import all_blocks
from machine_speed import scaled

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

OURS = ("verl_hw_core", "verl_hw_sim")


def names_of(module: str) -> set[str] | None:
    """What a module defines or imports at its top, read and not run; None where there is no such module."""
    top, *rest = module.split(".")
    path = Path((find_spec(top).submodule_search_locations or [])[0]).joinpath(*rest)
    source = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
    if not source.is_file():
        return None
    found = {entry.stem for entry in path.glob("*")} if path.is_dir() else set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom | ast.Import):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


@pytest.mark.parametrize("block", all_blocks("python"), ids=lambda block: block.where)
def test_python_compiles_and_imports_what_is_there(block):
    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS:
            known = names_of(node.module)
            assert known is not None, f"no module {node.module}"
            assert {alias.name for alias in node.names} - known == set()


@pytest.mark.parametrize("block", all_blocks("bash", "sh"), ids=lambda block: block.where)
def test_shell_can_be_parsed(block):
    bash = shutil.which("bash")
    assert bash is not None
    text = block.text.replace("<", "").replace(">", "")  # <placeholder> would be a redirection
    done = subprocess.run([bash, "-n"], input=text, capture_output=True, text=True, timeout=scaled(20), check=False)
    assert done.returncode == 0, done.stderr


def test_data_blocks_can_be_read():
    found = all_blocks("toml", "yaml", "json")
    assert {block.language for block in found} >= {"toml", "yaml"}
    readers = {"toml": tomllib.loads, "yaml": yaml.safe_load, "json": json.loads}
    for block in found:
        assert readers[block.language](block.text), block.where


def test_entry_point_groups_are_ours_or_verls():
    ours = {"checks", "doctor", "megatron_architectures", "model_patches"}
    known = {"verl.plugins", "verl_hw_sim.profiles"} | {f"verl_hw.{name}" for name in ours}
    groups = {
        group
        for block in all_blocks("toml")
        for group in tomllib.loads(block.text).get("project", {}).get("entry-points", {})
    }
    assert groups == known
