# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A new member of verl-hw's own workspace: the files that name the members, with one more."""

import json
import re
from pathlib import Path

from verl_hw_tools.errors import WorkspaceError
from verl_hw_tools.scaffold.names import VendorNames

_MARK = Path("shared/verl-hw-core/pyproject.toml")
_KNOWN = Path("shared/verl-hw-core/src/verl_hw_core/known_wheels.json")
# A line that names each member, and the line that the new one adds behind the last of them.
_LINES = (
    (r"^verl-hw-[a-z0-9-]+ = \{ workspace = true \}\n", "{distribution} = {{ workspace = true }}\n"),
    (r'^    "packages/verl-hw-[a-z0-9-]+/src",\n', '    "packages/{distribution}/src",\n'),
)
_MYPY_MODULES = re.compile(r'(^module = \["verl_hw_core\.platform\.\*", .*"verl_hw_[a-z0-9_]+\.\*")\]$', re.MULTILINE)


def find_root(start: Path) -> Path:
    """Return the workspace's root, which ``start`` lies in.

    Raises:
        WorkspaceError: It lies in none.
    """
    for folder in (start.absolute(), *start.absolute().parents):
        if (folder / _MARK).is_file() and (folder / "packages").is_dir():
            return folder
    raise WorkspaceError(
        f"--in-tree adds a package to a checkout of verl-hw, and {start.absolute()} is in none: "
        "change into the checkout, or leave --in-tree out for a repository of its own"
    )


def edited_files(root: Path, names: VendorNames) -> dict[Path, str]:
    """Return the new text of each file of the workspace that lists its members.

    Raises:
        WorkspaceError: A file does not have the form that this edits.
    """
    project, known = root / "pyproject.toml", root / _KNOWN
    return {project: _project(project, names), known: _known_wheels(known, names)}


def _project(path: Path, names: VendorNames) -> str:
    text = path.read_text(encoding="utf-8")
    for pattern, line in _LINES:
        found = list(re.finditer(pattern, text, re.MULTILINE))
        if not found:
            raise WorkspaceError(f"{path} has no line like {pattern!r} to put the new member behind: add it by hand")
        at = found[-1].end()
        text = text[:at] + line.format(distribution=names.distribution) + text[at:]
    text, count = _MYPY_MODULES.subn(rf'\1, "{names.module}.*"]', text)
    if count != 1:
        raise WorkspaceError(f"{path} has no mypy override that ends in the vendors' modules: add it by hand")
    return text


def _known_wheels(path: Path, names: VendorNames) -> str:
    known = json.loads(path.read_text(encoding="utf-8"))
    known |= dict.fromkeys((names.vendor, names.device), names.distribution)
    return json.dumps(known, indent=2) + "\n"
