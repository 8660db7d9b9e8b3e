# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Results of management tools, shared by the processes of one user on one node.

A folder that only this user can enter holds one JSON file for each boot and mount namespace. Whatever goes wrong
here costs another run of the tools and nothing else.
"""

import json
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from verl_hw_core.detection.tool_run import ToolResult

if TYPE_CHECKING:
    from filelock import BaseFileLock

CACHE_ENVVAR = "VERL_HW_PROBE_CACHE"
ANSWERED_SECONDS = 24 * 3600.0
UNANSWERED_SECONDS = 600.0
_MAX_FILE_BYTES = 1024 * 1024
_FAILURES = (OSError, ValueError, RuntimeError)  # filelock's Timeout is an OSError, a missing home a RuntimeError

logger = logging.getLogger(__name__)


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
