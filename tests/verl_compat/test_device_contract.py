# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The list of names that verl asks of a device module is complete, and nothing on it is stale."""

import ast
import importlib.util
from pathlib import Path

from verl_hw_core.platform.vendor_module import ESSENTIAL, OPTIONAL


def verl_source() -> Path:
    return Path(importlib.util.find_spec("verl").origin).parent


def is_device_module(node: ast.expr, bound: set[str]) -> bool:
    call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "get_torch_device"
    return call or (isinstance(node, ast.Name) and node.id in bound)


def names_asked_for(source: str) -> set[str]:
    """Attributes of ``get_torch_device()``, directly or through a variable that it was assigned to."""
    nodes = list(ast.walk(ast.parse(source)))
    bound = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and is_device_module(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_device_module(node.value, bound)}


def test_the_scan_sees_both_forms():
    assert names_asked_for("get_torch_device().alpha()\nd = get_torch_device()\nd.beta.gamma()\nother.delta") == {
        "alpha",
        "beta",
    }


def test_list_matches_the_installed_verl():
    asked = set()
    for path in verl_source().rglob("*.py"):
        asked |= names_asked_for(path.read_text(encoding="utf-8"))
    assert asked == set(ESSENTIAL) | set(OPTIONAL)
