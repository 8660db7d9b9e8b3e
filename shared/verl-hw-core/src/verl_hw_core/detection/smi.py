# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Probe: does a management tool of this vendor answer?"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verl_hw_core.detection.evidence import Evidence, Verdict
from verl_hw_core.detection.probe_root import below
from verl_hw_core.detection.result_cache import ResultCache, open_cache
from verl_hw_core.detection.tool_run import ToolCall, ToolResult, run_all
from verl_hw_core.hardware import HardwareSpec, SmiTool

_COMMON_FOLDERS = ("/usr/bin", "/usr/local/bin")
# Parts of the time that is left: who runs the tools must be done before those who wait for it give up.
_RUN_SHARE = 0.8
_WAIT_SHARE = 0.95
# What a process that waited in vain (the holder of the lock is stuck) still gives the tools.
_LEAST_SECONDS = 0.25

_results: dict[str, ToolResult] = {}


@dataclass(frozen=True)
class _Place:
    """Where a tool is: ``call`` when it can be run, ``blocked`` when it is there but not executable."""

    call: ToolCall | None = None
    blocked: str | None = None


def smi(specs: Sequence[HardwareSpec], root: Path, end: float, *, thorough: bool) -> dict[str, tuple[Evidence, ...]]:
    """Runs the vendors' management tools, all at the same time.

    Args:
        specs: Vendors to ask about.
        root: Where absolute paths are looked up; ``PATH`` is always the real one.
        end: Deadline for all tools together, as a value of ``time.monotonic()``.
        thorough: Whether to run also the tools that cannot identify their vendor. They decide nothing, so by default
            only their presence is reported.

    Returns:
        Evidence by spec key, one piece for each tool.
    """
    places = {tool: _find(tool, root) for spec in specs for tool in spec.traces.smi}
    calls = [place.call for tool, place in places.items() if place.call and (thorough or tool.identifies_vendor)]
    results = _ask_all(calls, root, end, _environment(specs))
    return {spec.key: tuple(_evidence(tool, places[tool], results) for tool in spec.traces.smi) for spec in specs}


def forget_results() -> None:
    """Forgets the results that this process holds; for tests."""
    _results.clear()


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


def _ask_all(
    calls: Sequence[ToolCall], root: Path, end: float, environment: Mapping[str, str]
) -> dict[ToolCall, ToolResult]:
    keys = {call: _key(call, root) for call in calls}
    missing = [call for call, key in keys.items() if key not in _results]
    if missing:
        _results.update(_shared_results({call: keys[call] for call in missing}, end, environment))
    return {call: _results[key] for call, key in keys.items()}


def _shared_results(keys: Mapping[ToolCall, str], end: float, environment: Mapping[str, str]) -> dict[str, ToolResult]:
    cache = open_cache()
    if cache is None:
        return _run(keys, end, environment)
    known = _known(cache, keys)
    if len(known) == len(keys):
        return known
    with cache.hold(_part(end, _WAIT_SHARE) - time.monotonic()) as is_held:
        known = _known(cache, keys)  # another process may have run the tools while this one waited
        missing = {call: key for call, key in keys.items() if key not in known}
        if missing:
            run_end = _part(end, _RUN_SHARE) if is_held else max(end, time.monotonic() + _LEAST_SECONDS)
            fresh = _run(missing, run_end, environment)
            if is_held:
                cache.store(fresh)
            known.update(fresh)
    return known


def _known(cache: ResultCache, keys: Mapping[ToolCall, str]) -> dict[str, ToolResult]:
    wanted = set(keys.values())
    return {
        key: ToolResult(result.answered, f"{result.why} (asked earlier on this node)")
        for key, result in cache.load().items()
        if key in wanted
    }


def _run(keys: Mapping[ToolCall, str], end: float, environment: Mapping[str, str]) -> dict[str, ToolResult]:
    return {keys[call]: result for call, result in run_all(list(keys), end, environment).items()}


def _part(end: float, share: float) -> float:
    now = time.monotonic()
    return now + share * max(0.0, end - now)


def _key(call: ToolCall, root: Path) -> str:
    try:
        found = Path(call.path).stat()
        identity = f"{found.st_mtime_ns}:{found.st_size}"
    except OSError:
        identity = "gone"
    return "|".join((str(root), call.path, identity, *call.args))
