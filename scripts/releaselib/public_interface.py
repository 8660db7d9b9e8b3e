# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A package's public interface against its last release, with waivers for what was broken on purpose."""

import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import griffe

from releaselib.building import export
from releaselib.packages import Package
from releaselib.processes import ReleaseError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "public_interface.toml"


@dataclass(frozen=True)
class Break:
    """One thing that code written for the last release may fail on: what, and griffe's word for how."""

    path: str
    kind: str


def is_stated(package: Package) -> bool:
    """Whether the package says what others build on."""
    return (package.folder / FILE).is_file()


def breaks(package: Package, tag: str) -> list[Break]:
    """Return what broke since a tag, in the modules that the package's public_interface.toml lists."""
    source = package.folder.relative_to(package.root) / "src"
    with TemporaryDirectory(prefix="verl-hw-api-") as name:
        old_tree = export(package.root, tag, Path(name) / "tree")
        old = griffe.load(package.module, search_paths=[old_tree / source], allow_inspection=False)
        new = griffe.load(package.module, search_paths=[package.root / source], allow_inspection=False)
        found = [Break(_path(one), one.kind.value) for one in griffe.find_breaking_changes(old, new)]
    public = _settings(package)["public"]
    return [
        one
        for one in found
        if any(one.path == name or one.path.startswith((f"{name}.", f"{name}(")) for name in public)
    ]


def check(package: Package) -> str:
    """Compare with the last release and return one line on it.

    Raises:
        ReleaseError: Something is broken without a waiver, or a waiver is for nothing.
    """
    tag = package.last_tag()
    waived = {(one["object"], one["kind"]) for one in _settings(package).get("waiver", ())}
    if tag is None:
        return f"{package.name} was never released: no interface to keep yet"
    found = breaks(package, tag)
    new = [one for one in found if (one.path, one.kind) not in waived]
    if new:
        lines = "\n".join(f"  {one.path}: {one.kind}" for one in new)
        raise ReleaseError(
            f"the public interface of {package.name} is not that of {tag}:\n{lines}\n"
            f"Keep what was there, or raise the minor version and add a waiver with its reason to {FILE}"
        )
    unused = waived - {(one.path, one.kind) for one in found}
    if unused:
        raise ReleaseError(f"{FILE}: nothing broke where these waivers are for: {sorted(unused)}: remove them")
    return f"public interface as in {tag}" + (f", {len(found)} waived" if found else "")


def _path(breakage: griffe.Breakage) -> str:
    """The object's path, with the parameter that it is about."""
    value = breakage.new_value if breakage.old_value is None else breakage.old_value
    return f"{breakage.obj.path}({value.name})" if isinstance(value, griffe.Parameter) else str(breakage.obj.path)


def _settings(package: Package) -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((package.folder / FILE).read_text(encoding="utf-8"))
    incomplete = [one for one in settings.get("waiver", ()) if {"object", "kind", "reason"} - set(one)]
    if incomplete:
        raise ReleaseError(f"{FILE}: a waiver names object, kind and reason: {incomplete[0]}")
    return settings
