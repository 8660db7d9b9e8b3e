# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Asks management tools once: once in a process, and once on a node where the cache can be used.

The cache is shared by the processes of one user on one node: a folder that only this user can enter holds one JSON file
for each boot and mount namespace. Whatever goes wrong with it costs another run of the tools and nothing else.
"""

import json
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from verl_hw_core.detection.tool_run import ToolCall, ToolResult, run_all

if TYPE_CHECKING:
    from filelock import BaseFileLock

CACHE_ENVVAR = "VERL_HW_PROBE_CACHE"
ANSWERED_SECONDS = 24 * 3600.0
UNANSWERED_SECONDS = 600.0
# Parts of the deadline: who runs the tools must be done before those who wait for it give up.
_RUN_SHARE = 0.8
_WAIT_SHARE = 0.95
# What a process that waited in vain (the holder of the lock is stuck) still gives the tools.
_LEAST_SECONDS = 0.25
_MAX_FILE_BYTES = 1024 * 1024
_FAILURES = (OSError, ValueError, RuntimeError)  # filelock's Timeout is an OSError, a missing home a RuntimeError

logger = logging.getLogger("verl_hw_core")


class ResultCache:
    """The cache file of this boot and mount namespace in a private folder."""

    def __init__(self, folder: Path, boot_id: str) -> None:
        name = sha256(f"{boot_id} {_mount_namespace()}".encode()).hexdigest()[:16]
        self._folder = folder
        self._file = folder / f"probes-{name}.json"

    def load(self) -> dict[str, ToolResult]:
        """Returns the results that are still valid, by key; nothing when the file is missing or damaged."""
        return {key: result for key, (result, _) in self._entries().items()}

    def store(self, results: Mapping[str, ToolResult]) -> None:
        """Adds results, atomically. Call it while holding the lock."""
        now = time.monotonic()
        entries = {**self._entries(), **{key: (result, now) for key, result in results.items()}}
        content = {
            key: {"answered": result.answered, "why": result.why, "at": at} for key, (result, at) in entries.items()
        }
        try:
            handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=".new-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(content, file)
                Path(temporary).replace(self._file)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            self._remove_old_files()
        except _FAILURES as error:
            logger.debug("Probe results are not stored in %s: %s", self._file, error)

    def new_lock(self) -> "BaseFileLock":
        """Returns the lock that lets one process run the tools, not yet held."""
        from filelock import FileLock  # costs 90 ms to import, and is needed only on the first run of a tool

        return FileLock(self._file.with_suffix(".lock"), mode=0o600)

    @contextmanager
    def hold(self, lock: "BaseFileLock", seconds: float) -> Iterator[bool]:
        """Holds the lock; yields False when it cannot be had within ``seconds``."""
        try:
            lock.acquire(timeout=max(0.0, seconds), poll_interval=0.02)
        except _FAILURES as error:
            logger.debug("Probing without the lock: %s", error)
            yield False
            return
        try:
            yield True
        finally:
            try:
                lock.release()
            except _FAILURES as error:
                logger.debug("The lock of the probe results was not given back: %s", error)

    def _entries(self) -> dict[str, tuple[ToolResult, float]]:
        try:
            with self._file.open("rb") as file:
                content = json.loads(file.read(_MAX_FILE_BYTES))
        except FileNotFoundError:
            return {}
        except _FAILURES as error:
            logger.debug("Probe results in %s are not usable: %s", self._file, error)
            return {}
        if not isinstance(content, dict):
            return {}
        # The monotonic clock counts from boot and is the same in all processes; the file belongs to one boot.
        now = time.monotonic()
        parsed = {key: _parse(value) for key, value in content.items()}
        return {key: entry for key, entry in parsed.items() if entry is not None and _is_fresh(entry, now)}

    def _remove_old_files(self) -> None:
        oldest = time.time() - ANSWERED_SECONDS
        for file in self._folder.glob("probes-*"):
            if file.stat().st_mtime < oldest:
                file.unlink(missing_ok=True)


def open_cache() -> ResultCache | None:
    """Returns this node's cache, or None when it is switched off or no private folder can be had."""
    if os.environ.get(CACHE_ENVVAR, "").strip() == "0":
        return None
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except _FAILURES as error:
        logger.debug("No probe cache, this boot cannot be told from others: %s", error)
        return None
    for folder in _candidate_folders():
        try:
            _make_private(folder)
        except _FAILURES as error:
            logger.debug("No probe cache in %s: %s", folder, error)
            continue
        return ResultCache(folder, boot_id)
    return None


def _candidate_folders() -> Iterator[Path]:
    from platformdirs import user_cache_path  # costs 20 ms to import

    try:
        yield user_cache_path("verl-hw", appauthor=False) / "probes"
    except RuntimeError as error:
        logger.debug("No cache folder: %s", error)  # the user has no home
    # A container's home is often read-only or missing.
    yield Path(tempfile.gettempdir()) / f"verl-hw-probes-{os.geteuid()}"


def _make_private(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} must be a folder that belongs to this user alone (mode 0700)")


def _mount_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/mnt").readlink())
    except OSError:
        return ""


def _parse(value: object) -> tuple[ToolResult, float] | None:
    if not isinstance(value, dict):
        return None
    answered, why, at = value.get("answered"), value.get("why"), value.get("at")
    if isinstance(answered, bool) and isinstance(why, str) and isinstance(at, (int, float)):
        return ToolResult(answered, why), float(at)
    return None


def _is_fresh(entry: tuple[ToolResult, float], now: float) -> bool:
    result, at = entry
    return 0 <= now - at < (ANSWERED_SECONDS if result.answered else UNANSWERED_SECONDS)


_results: dict[str, ToolResult] = {}


def ask(
    calls: Sequence[ToolCall], root: Path, deadline_s: float, environment: Mapping[str, str]
) -> dict[ToolCall, ToolResult]:
    """Returns the result of each call, from this process, this node's cache or a run of the tools.

    The answers hold under the probe root. The deadline is for all that must be run, and for waiting until another
    process has run it; ``environment`` is the tools' whole environment.
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
