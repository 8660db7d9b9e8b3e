# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Sections of documents that a script writes, between two marks, and that a test compares."""

import re
from collections.abc import Callable

END = "<!-- end -->\n"


def renewed(text: str, script: str, section: Callable[[str], str]) -> str:
    """Return ``text`` with every section of ``script`` written anew.

    A section begins with the line ``<!-- generated: python3 scripts/SCRIPT NAME -->`` (the name may be left out) and
    ends with ``<!-- end -->``.

    Args:
        text: The document.
        script: File name of the script in ``scripts/``.
        section: Gives the section of a name.

    Raises:
        ValueError: A section has no end.
    """
    begin = re.compile(rf"^<!-- generated: python3 scripts/{re.escape(script)}(?: ([a-z_]+))? -->\n", re.MULTILINE)
    parts, position = [], 0
    while found := begin.search(text, position):
        end = text.find(END, found.end())
        if end < 0:
            raise ValueError(f"the section that begins with {found.group(0).strip()!r} has no {END.strip()!r}")
        parts += [text[position : found.end()], "\n", section(found.group(1) or "").strip("\n"), "\n\n"]
        position = end
    return "".join([*parts, text[position:]])
