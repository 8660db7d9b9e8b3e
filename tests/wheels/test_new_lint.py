# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What ``verl-hw new`` writes passes the linter at once, whatever the names sort like."""

import shutil
import sys
from pathlib import Path

import pytest
from wheelkit import ROOT, run

from verl_hw_tools.scaffold import names as scaffold_names
from verl_hw_tools.scaffold.names import VendorNames
from verl_hw_tools.scaffold.new_package import make_member, make_repository

NAMES = VendorNames(vendor="zeta_nine", device="zeta", ccl="zccl", display="Zeta Nine")


@pytest.mark.parametrize("in_tree", [False, True], ids=["own repository", "in tree"])
def test_ruff_finds_nothing(in_tree, tmp_path, monkeypatch):
    monkeypatch.setattr(scaffold_names, "find_spec", lambda name: None)  # torch takes seconds to import
    if in_tree:
        shutil.copy(ROOT / "pyproject.toml", tmp_path)
        for member in ("verl-hw-core", "verl-hw-tools", "verl-hw-sim"):
            ignored = shutil.ignore_patterns("tests", "csrc", "__pycache__")
            shutil.copytree(ROOT / "shared" / member, tmp_path / "shared" / member, ignore=ignored)
        (tmp_path / "packages").mkdir()
    made = make_member(NAMES, tmp_path) if in_tree else make_repository(NAMES, tmp_path / "own")
    ruff = Path(sys.executable).with_name("ruff")
    run([ruff, "check", "--no-cache", made.folder], cwd=tmp_path)
    run([ruff, "format", "--no-cache", "--check", made.folder], cwd=tmp_path)
