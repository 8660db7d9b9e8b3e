# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The facts for a bug report as Markdown that can be pasted into an issue."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def as_markdown(found: Mapping[str, Any]) -> str:
    """Return what :func:`verl_hw_tools.doctor.bug_report.collect` found as Markdown."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    choice = found["verl_would_use"]
    yield "### Environment (verl-hw env)"
    yield ""
    yield f"verl would use **{choice['vendor'] or 'none of the installed vendors'}**: {choice['because']}"
    yield from _table("System", found["system"].items())
    yield from _table("Packages", found["packages"].items())
    yield from _table("torch", _torch(found["torch"]))
    for vendor in found["vendors"]:
        yield from _table(f"{vendor['distribution']} {vendor['version']}: {vendor['verdict']}", _vendor(vendor))
    yield from _table("verl", _verl(found))
    yield from _table("Environment variables", found["environment"].items())


def _torch(torch: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if torch["metadata"] is None and torch["imported"] is None and torch["version_file"] is None:
        yield "torch", "not installed"
        return
    yield "package", torch["metadata"] or "without a package"
    yield "version.py", ", ".join([torch["version_file"] or "?", *(f"{k}={v}" for k, v in torch["build"].items())])
    yield "imported", f"{torch['imported']} ({torch['where']})" if torch["imported"] else "no"


def _vendor(vendor: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from vendor["evidence"].items()
    yield from ((f"package {name}", owner) for name, owner in vendor["packages"].items())
    yield from vendor["sdk"].items()


def _verl(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((f"plugin {plugin['name']}", f"{plugin['package']}: {plugin['state']}") for plugin in found["plugins"])
    yield from (
        (f"platform {name}", f"{one['class']} ({one['distribution']})") for name, one in found["platforms"].items()
    )
    if found["platform"] is not None:
        yield "platform in force", ", ".join(f"{name} {value}" for name, value in found["platform"].items())
    yield from (
        (f"engine {row['model_type']} x {row['backend']}", f"{row['engine']} ({row['distribution']})")
        for row in found["engines"]
    )
    yield from ((f"devices: {name}", str(value)) for name, value in found["devices"].items())
    yield from (("problem", text) for text in (*found["broken_wheels"], *found["problems"]))


def _table(title: str, rows: Iterable[tuple[str, Any]]) -> Iterator[str]:
    lines = [f"| {_cell(name)} | {_cell(value)} |" for name, value in rows]
    if not lines:
        return
    yield from ("", f"#### {title}", "", "| | |", "|---|---|", *lines)


def _cell(value: Any) -> str:
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")
