# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Real text that is on every machine: questions and answers from the docstrings of Python's standard library.

Sources are parsed, never imported, and the same Python with the same seed gives the same pairs in the same order.
"""

import ast
import random
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from verl_hw_tools.errors import DemoDataError

LONGEST_PAIR = 160
"""Characters of a question and its answer together: one byte is one token, so this bounds a sequence's length."""

_PER_MODULE = 40  # so that a few large modules do not make up the whole set
_SHORTEST_ANSWER = 16
_NOT_LIBRARY = frozenset(
    {"__pycache__", "config", "ensurepip", "idlelib", "lib2to3", "site-packages", "dist-packages", "test", "tests"}
)
# A module's file name where people know it by another one; ntpath repeats posixpath's answers.
_KNOWN_AS = {"posixpath": "os.path"}
_REPEATED = frozenset({"ntpath"})
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


@dataclass(frozen=True)
class Pair:
    """One question about the standard library and its answer."""

    question: str
    answer: str


def collect_pairs(count: int, seed: int, library: Path | None = None) -> list[Pair]:
    """Return ``count`` pairs, shuffled by ``seed``.

    Args:
        count: How many pairs are wanted.
        seed: Decides which modules are read first and the order of the pairs.
        library: Folder of the sources; the running Python's standard library by default.

    Raises:
        DemoDataError: The library has too few docstrings, as where its sources were stripped.
    """
    root = library or Path(sysconfig.get_path("stdlib"))
    shuffle = random.Random(seed)  # noqa: S311 - a reproducible order, no secret
    files = _sources(root)
    shuffle.shuffle(files)
    by_answer: dict[str, Pair] = {}  # overridden methods repeat their docstrings: each answer once
    for path in files:
        for pair in islice(_pairs_of(path, root), _PER_MODULE):
            by_answer.setdefault(pair.answer, pair)
        if len(by_answer) >= count:
            break
    pairs = list(by_answer.values())
    if len(pairs) < count:
        raise DemoDataError(
            f"the demo needs {count} questions from the docstrings below {root}, found {len(pairs)}: "
            "ask for fewer --steps, or use a Python that has the sources of its standard library"
        )
    shuffle.shuffle(pairs)
    return pairs[:count]


def first_sentence(docstring: str) -> str:
    """Return the first sentence of a docstring on one line, or an empty string when it has none."""
    paragraph = " ".join(docstring.strip().split("\n\n", maxsplit=1)[0].split())
    end = _SENTENCE_END.search(paragraph)
    return paragraph[: end.end()] if end else ""


def _sources(root: Path) -> list[Path]:
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if not any(part in _NOT_LIBRARY or part.startswith(("_", "config-")) for part in _module_parts(parts)):
            found.append(path)
    return found


def _module_parts(parts: tuple[str, ...]) -> tuple[str, ...]:
    return parts[:-1] if parts[-1] == "__init__" else parts


def _pairs_of(path: Path, root: Path) -> Iterator[Pair]:
    module = ".".join(_module_parts(path.relative_to(root).with_suffix("").parts))
    if module in _REPEATED:
        return
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # the library holds a few files that are wrong on purpose
    for name, docstring in _documented(tree, _KNOWN_AS.get(module, module)):
        pair = Pair(f"What does {name} do?", first_sentence(docstring))
        text = pair.question + pair.answer
        if len(pair.answer) >= _SHORTEST_ANSWER and len(text) <= LONGEST_PAIR and text.isascii() and text.isprintable():
            yield pair


def _documented(body: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, str]]:
    """Public functions and classes, and the public methods of those classes, that have a docstring."""
    for node in body.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        name = f"{prefix}.{node.name}"
        docstring = ast.get_docstring(node)
        if docstring:
            yield name, docstring
        if isinstance(node, ast.ClassDef):
            yield from _documented(node, name)
