# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Make a vendor's package, in a folder of its own or in verl-hw's workspace."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from verl_hw_tools.errors import OutputFolderError
from verl_hw_tools.scaffold.names import VendorNames, check_free
from verl_hw_tools.scaffold.rendering import guide_files, package_files
from verl_hw_tools.scaffold.workspace import edited_files, find_root
from verl_hw_tools.scaffold.writing import check_vacant, replace_files, write_tree


@dataclass(frozen=True, kw_only=True)
class NewPackage:
    """What was written.

    Attributes:
        names: The vendor.
        folder: The package.
        changed: Files of the workspace that were changed; empty for a repository of its own.
        next_steps: What to type, in order: a command, or a sentence on what to do.
    """

    names: VendorNames
    folder: Path
    changed: tuple[Path, ...]
    next_steps: tuple[str, ...]


def make_repository(names: VendorNames, folder: Path) -> NewPackage:
    """Write the package as a repository of its own, which depends on a released core.

    Raises:
        VendorNameError: A name is taken.
        OutputFolderError: The folder holds something, or cannot be written.
    """
    check_vacant(folder)
    check_free(names)
    write_tree(folder, package_files(names, in_tree=False))
    steps = (
        f"cd {quote(str(folder))}",
        "pip install --upgrade pip   # --group needs 25.1 or newer",
        "pip install --group test --editable .   # with --find-links <clone of verl-hw>/dist until it is on an index",
        'pytest -m "not slow", then pytest, which takes minutes',
        f"verl-hw demo --vendor {names.vendor} --steps 4",
        f"Answer each [U] in src/{names.module}/spec.py, with its source; then fill in README.md and docs/.",
        f"On a machine with the hardware: verl-hw check --vendor {names.vendor}, then verl-hw demo --real.",
        _keep(folder.absolute()),
    )
    return NewPackage(names=names, folder=folder, changed=(), next_steps=steps)


def _keep(folder: Path) -> str:
    around = next((one for one in folder.parents if (one / ".git").exists()), None)
    if around is None:
        return "Keep it: git init && git add . && git commit"
    return (
        f"It lies in the repository {around}: move it out, since GitHub runs its .github of a repository's root only."
    )


def make_member(names: VendorNames, start: Path) -> NewPackage:
    """Write the package as a member of the workspace that ``start`` lies in.

    Raises:
        VendorNameError: A name is taken.
        WorkspaceError: ``start`` lies in no checkout of verl-hw, or its files have another form.
        OutputFolderError: The package is there already, or cannot be written.
    """
    root = find_root(start)
    folder, guide = root / "packages" / names.distribution, root / "docs" / f"user_guide_{names.vendor}"
    check_vacant(folder)
    check_vacant(guide)
    check_free(names)
    edits = edited_files(root, names)
    pages = guide_files(names)
    write_tree(folder, package_files(names, in_tree=True))
    try:
        write_tree(guide, pages)
        replace_files(edits)
    except OutputFolderError:
        for begun in (folder, guide):
            shutil.rmtree(begun, ignore_errors=True)
        raise
    steps = (
        f"cd {quote(str(root))} && python3 scripts/dev.py run uv lock",
        "python3 scripts/dev.py sync",
        f'Add "{names.vendor}": "{names.device}" to VENDORS in tests/support/wheelkit.py.',
        "python3 scripts/dev.py run python scripts/write_vendor_docs.py",
        f"python3 scripts/dev.py test --slow packages/{names.distribution}",
        f"python3 scripts/dev.py demo --vendor {names.vendor} --steps 4",
        f"Answer each [U] in packages/{names.distribution}/src/{names.module}/spec.py, with its source.",
    )
    return NewPackage(names=names, folder=folder, changed=tuple(edits), next_steps=steps)
