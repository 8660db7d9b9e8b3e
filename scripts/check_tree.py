#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Checks on tracked files that no linter makes; part of ``scripts/dev.py lint``.

- Each source file begins with the two SPDX lines.
- No path of somebody's machine.
- No vendor name in the code of core and tools: its facts belong in the vendor's wheel. Comments and docstrings may
  name vendors as examples.
- Vendor code writes no environment variable (the core does that, for the chosen platform only).
- Long files are listed, not refused.

A line that is right all the same says why in a comment: ``check-tree: allow (reason)``.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

SPDX = ("SPDX-FileCopyrightText:", "SPDX-License-Identifier: Apache-2.0")
SOURCE_SUFFIXES = {".py", ".pyi", ".sh", ".toml", ".yml", ".yaml", ".cpp", ".cc", ".h", ".hpp", ".cfg", ".ini"}
SPDX_WITHIN_LINES = 4

MACHINE_PATH = re.compile(r"/(?:home|root|work|data\d+|Users)/|/tmp/[a-z]")
PATHS_NOT_SEARCHED = {"uv.lock"}

SHARED = ("shared/verl-hw-core/src/", "shared/verl-hw-tools/src/")
VENDOR = re.compile(
    r"cambricon|enflame|metax|\bintel\b|\bmlu\b|\bgcu\b|\bxpu\b|torch_(?:mlu|gcu)|mx-smi|cnmon|efsmi|xpu-smi"
    r"|\b(?:cncl|eccl|xccl|mccl)\b|neuware|\bmaca\b|topsrider",
    re.IGNORECASE,
)

URL = re.compile(r"https?://\S+")  # who discusses something upstream is no fact of a vendor
ALLOW = re.compile(r"check-tree: allow \(.+\)")
LONG = 300


class Finding(NamedTuple):
    """One thing that is wrong."""

    path: str
    line: int
    message: str


def main(argv: list[str] | None = None) -> int:
    """Check the tracked files (or those named) and return 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="files to check instead of every tracked one, relative to the root")
    parser.add_argument("--root", type=Path, default=ROOT, help="root of the tree (default: this repository)")
    options = parser.parse_args(argv)
    names = options.files or tracked(options.root)
    findings, long_files = [], []
    for name in names:
        text = read(options.root / name)
        if text is None:
            continue
        findings += check(name, text)
        length = text.count("\n")
        if name.endswith((".py", ".cpp")) and length > LONG:
            long_files.append((length, name))
    for length, name in sorted(long_files, reverse=True):
        print(f"note: {name} has {length} lines (aim: at most {LONG})")
    for finding in findings:
        print(f"{finding.path}:{finding.line}: {finding.message}")
    print(f"check_tree: {len(names)} files, {len(findings)} findings")
    return 1 if findings else 0


def tracked(root: Path) -> list[str]:
    """Return the files that git tracks or would track, relative to ``root``."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=60).stdout
    return sorted({name for name in listed.split("\0") if name})


def read(path: Path) -> str | None:
    """Return a text file's text; None for a folder, a link, a deleted or a binary file."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def check(name: str, text: str) -> list[Finding]:
    """Return everything that is wrong with one file."""
    lines = text.splitlines()
    found = [*spdx(name, lines), *machine_paths(name, lines)]
    if name.endswith(".py"):
        if name.startswith(SHARED):
            found += vendor_names(name, text)
        if re.match(r"packages/[^/]+/src/", name):
            found += environment_writes(name, text)
    return [one for one in found if not (0 < one.line <= len(lines) and ALLOW.search(lines[one.line - 1]))]


def spdx(name: str, lines: list[str]) -> Iterator[Finding]:
    """Both SPDX lines stand at the top of a source file or script."""
    is_source = Path(name).suffix in SOURCE_SUFFIXES or (bool(lines) and lines[0].startswith("#!"))
    top = "\n".join(lines[:SPDX_WITHIN_LINES])
    if is_source and lines and not all(mark in top for mark in SPDX):
        yield Finding(name, 1, f"the first lines must hold {' and '.join(SPDX)}")


def machine_paths(name: str, lines: list[str]) -> Iterator[Finding]:
    """No path that exists on one machine only."""
    if name in PATHS_NOT_SEARCHED:
        return
    for number, line in enumerate(lines, start=1):
        if found := MACHINE_PATH.search(line):
            yield Finding(name, number, f"a path of one machine: {line[found.start() : found.start() + 40].strip()}")


def vendor_names(name: str, text: str) -> Iterator[Finding]:
    """The shared code names no vendor; docstrings and comments may."""
    tree = ast.parse(text)
    docstrings = {id(node) for node in _docstrings(tree)}
    for node in ast.walk(tree):
        for word in _words(node):
            if id(node) not in docstrings and (found := VENDOR.search(URL.sub("", word))):
                line = getattr(node, "lineno", 1)
                yield Finding(name, line, f"shared code names a vendor ({found.group(0)}): a fact for its wheel")


def environment_writes(name: str, text: str) -> Iterator[Finding]:
    """Vendor code leaves the environment alone."""
    for node in ast.walk(ast.parse(text)):
        if _writes_environment(node):
            yield Finding(name, getattr(node, "lineno", 1), "vendor code writes the environment: state it in the spec")


def _docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    """String statements: docstrings of every kind, also those that follow an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def _words(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for attribute in ("id", "attr", "name", "arg", "module"):
        value = getattr(node, attribute, None)
        if isinstance(value, str):
            yield value.replace("_", " ")


def _writes_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return _is_environ(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        called = node.func
        if called.attr in ("update", "setdefault", "pop", "clear"):
            return _is_environ(called.value)
        return called.attr in ("putenv", "unsetenv")
    return False


def _is_environ(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


if __name__ == "__main__":
    sys.exit(main())
