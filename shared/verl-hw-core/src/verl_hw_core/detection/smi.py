# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Probe: does a management tool of this vendor answer?"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verl_hw_core.detection.evidence import Evidence, Verdict
from verl_hw_core.detection.lookup import below
from verl_hw_core.detection.result_cache import ask
from verl_hw_core.detection.tool_run import ToolCall, ToolResult
from verl_hw_core.facts.hardware import HardwareSpec, SmiTool

_COMMON_FOLDERS = ("/usr/bin", "/usr/local/bin")


@dataclass(frozen=True)
class _Place:
    """Where a tool is: ``call`` when it can be run, ``blocked`` when it is there but not executable."""

    call: ToolCall | None = None
    blocked: str | None = None


def smi(
    specs: Sequence[HardwareSpec], root: Path, deadline_s: float, *, thorough: bool
) -> dict[str, tuple[Evidence, ...]]:
    """Runs the vendors' management tools, all at the same time.

    Args:
        specs: Vendors to ask about.
        root: Where absolute paths are looked up; ``PATH`` is always the real one.
        deadline_s: Seconds for all tools together.
        thorough: Whether to run also the tools that cannot identify their vendor. They decide nothing, so by default
            only their presence is reported.

    Returns:
        Evidence by spec key, one piece for each tool.
    """
    places = {tool: _find(tool, root) for spec in specs for tool in spec.traces.smi}
    calls = [place.call for tool, place in places.items() if place.call and (thorough or tool.identifies_vendor)]
    results = ask(calls, root, deadline_s, _environment(specs))
    return {spec.key: tuple(_evidence(tool, places[tool], results) for tool in spec.traces.smi) for spec in specs}


def _evidence(tool: SmiTool, place: _Place, results: Mapping[ToolCall, ToolResult]) -> Evidence:
    kind = "smi" if tool.identifies_vendor else "smi_hint"
    if place.call is None:
        if place.blocked is not None:
            return Evidence(kind, Verdict.UNKNOWN, f"{place.blocked} is there but not executable")
        return Evidence(kind, Verdict.ABSENT, f"no {tool.command}")
    result = results.get(place.call)
    if result is None:
        why = f"{place.call.path} is there; not run, because another vendor has a tool of that name"
        return Evidence(kind, Verdict.UNKNOWN, why)
    return Evidence(kind, Verdict.PRESENT if result.answered else Verdict.UNKNOWN, result.why, result.seconds)


def _find(tool: SmiTool, root: Path) -> _Place:
    blocked = None
    for folder in _folders(tool, root):
        file = folder / tool.command
        if not _is_file(file):
            continue
        if os.access(file, os.X_OK):
            return _Place(ToolCall(str(file), tool.args))
        blocked = blocked or str(file)
    return _Place(blocked=blocked)


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:
        return False  # a folder of another user on PATH, as the superuser's after "su"


def _folders(tool: SmiTool, root: Path) -> Iterator[Path]:
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        # A relative entry would make the answer depend on the working directory, and run whatever lies there.
        if Path(folder).is_absolute():
            yield Path(folder)
    for folder in (*tool.paths, *_COMMON_FOLDERS):
        yield below(root, folder)


def _environment(specs: Iterable[HardwareSpec]) -> dict[str, str]:
    # A tool that honours a mask would answer differently in a worker than in the driver.
    masks = {name for spec in specs for name in (spec.visible_devices_envvar, *spec.overriding_visible_envvars)}
    return {**{name: value for name, value in os.environ.items() if name not in masks}, "LC_ALL": "C"}
