# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Asks management tools once: once in a process, and once on a node where the cache can be used."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from verl_hw_core.detection.result_cache import ResultCache, open_cache
from verl_hw_core.detection.tool_run import ToolCall, ToolResult, run_all

# Parts of the deadline: who runs the tools must be done before those who wait for it give up.
_RUN_SHARE = 0.8
_WAIT_SHARE = 0.95
# What a process that waited in vain (the holder of the lock is stuck) still gives the tools.
_LEAST_SECONDS = 0.25

_results: dict[str, ToolResult] = {}


def ask(
    calls: Sequence[ToolCall], root: Path, deadline_s: float, environment: Mapping[str, str]
) -> dict[ToolCall, ToolResult]:
    """Returns the result of each call, from this process, this node's cache or a run of the tools.

    Args:
        calls: What to ask.
        root: Probe root, under which the answers hold.
        deadline_s: Seconds for all that must be run, and for waiting until another process has run it.
        environment: Whole environment of the tools.
    """
    keys = {call: _key(call, root) for call in calls}
    missing = {call: key for call, key in keys.items() if key not in _results}
    if missing:
        _results.update(_ask_node(missing, deadline_s, environment))
    return {call: _results[key] for call, key in keys.items()}


def forget_results() -> None:
    """Forgets the results that this process holds; for tests."""
    _results.clear()


def _ask_node(keys: Mapping[ToolCall, str], deadline_s: float, environment: Mapping[str, str]) -> dict[str, ToolResult]:
    cache = open_cache()
    if cache is None:
        return _run(keys, time.monotonic() + deadline_s, environment)
    known = _known(cache, keys)
    if len(known) == len(keys):
        return known
    lock = cache.new_lock()
    # Counted from here: on a slow disk the imports above can take longer than any tool.
    end = time.monotonic() + deadline_s
    with cache.hold(lock, deadline_s * _WAIT_SHARE) as is_held:
        known = _known(cache, keys)  # another process may have run the tools while this one waited
        missing = {call: key for call, key in keys.items() if key not in known}
        if missing:
            seconds = max(_LEAST_SECONDS, (end - time.monotonic()) * (_RUN_SHARE if is_held else 1.0))
            fresh = _run(missing, time.monotonic() + seconds, environment)
            if is_held:
                # Silence is kept, since it costs the whole deadline each time, but not of a tool that had less time
                # than usual. A quick failure is cheap to ask again, and may be this process's environment's fault.
                slow = deadline_s / 2
                cache.store({key: result for key, result in fresh.items() if result.answered or result.seconds >= slow})
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


def _key(call: ToolCall, root: Path) -> str:
    try:
        found = Path(call.path).stat()
        identity = f"{found.st_mtime_ns}:{found.st_size}"
    except OSError:
        identity = "gone"
    return "|".join((str(root), call.path, identity, *call.args))
