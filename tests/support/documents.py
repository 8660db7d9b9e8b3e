# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The documents of the repository and the code in them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^ *```([\w{}]*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    path: Path
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def documents() -> list[Path]:
    """Every Markdown file that people read, without the fragments that the guides are made of."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.md")]
    found += [*ROOT.glob("packages/*/README.md"), *ROOT.glob("shared/*/README.md")]
    return sorted(path for path in found if path.parent.name != "fragments" and path.is_file())


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    return [
        Block(path, text.count("\n", 0, found.start()) + 1, found.group(1), found.group(2))
        for found in _FENCE.finditer(text)
    ]


def all_blocks(*languages: str) -> list[Block]:
    """The blocks of every document in one of ``languages``."""
    return [block for path in documents() for block in blocks(path) if block.language in languages]


def spans(path: Path) -> list[str]:
    """Code in running text and tables."""
    return _SPAN.findall(_FENCE.sub("", path.read_text(encoding="utf-8")))


def shell_lines(text: str) -> list[str]:
    """The commands of a shell block, with continued lines joined."""
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]
