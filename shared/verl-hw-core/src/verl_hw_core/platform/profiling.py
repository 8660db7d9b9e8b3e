# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Profiler markers and a profiler from a vendor's ranges and capture range, for a verl that asks its platform for them.

verl 0.9.1 has nvtx's and npu's only; what comes after it asks ``profiler_markers`` and ``dist_profiler_cls``.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from verl.plugin.platform import get_platform

Markers = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], Callable[..., Any]]


def markers(push: Callable[[str], bool], pop: Callable[[], object]) -> Markers:
    """Return verl's four marker functions over ranges that nest: start, end, decorator, timer.

    Colour, domain and category, which nvtx has, are accepted and have no effect. ``push`` opens a range of this name
    and says whether it is open; ``pop`` closes the innermost one.
    """

    def mark_start_range(message: str | None = None, *_: Any, **__: Any) -> bool:
        return push(message or "")

    def mark_end_range(range_id: bool) -> None:
        if range_id:
            pop()

    def mark_annotate(message: str | None = None, *_: Any, **__: Any) -> Callable[..., Any]:
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def marked(*args: Any, **kwargs: Any) -> Any:
                with _range(message or function.__name__):
                    return function(*args, **kwargs)

            return marked

        return decorate

    @contextmanager
    def marked_timer(name: str, timing_raw: dict[str, float], *_: Any, **__: Any) -> Iterator[None]:
        from verl.utils.profiler.performance import simple_timer

        with _range(name), simple_timer(name, timing_raw):
            yield

    @contextmanager
    def _range(name: str) -> Iterator[None]:
        opened = mark_start_range(name)
        try:
            yield
        finally:
            mark_end_range(opened)

    return mark_start_range, mark_end_range, mark_annotate, marked_timer


class PlatformProfiler:
    """verl's profiler ``tool=<vendor's key>``: the platform's capture range, and a range for each stage inside it.

    The vendor's own profiler records them, from outside of the process.

    Args:
        tool_config: ``discrete=True`` opens the capture range around each stage instead of the whole step.
    """

    def __init__(self, rank: int, config: Any = None, tool_config: Any = None, **_: Any) -> None:
        self.discrete = bool(getattr(tool_config, "discrete", False))

    def start(self, **_: Any) -> None:
        """Open the capture range of a step."""
        if not self.discrete:
            get_platform().profiler_start()

    def stop(self) -> None:
        """Close the capture range of a step."""
        if not self.discrete:
            get_platform().profiler_stop()

    def annotate(self, message: str | None = None, *_: Any, **stage: Any) -> Callable[..., Any]:
        """Return a decorator that marks a method of a worker as a stage, by message, verl's role or its name."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            if inspect.iscoroutinefunction(function):
                return function  # ranges nest by thread, and other coroutines run in it while this one waits

            @functools.wraps(function)
            def marked(*args: Any, **kwargs: Any) -> Any:
                platform = get_platform()
                if self.discrete:
                    platform.profiler_start()
                try:
                    with platform.nvtx_range(message or stage.get("role") or function.__name__):
                        return function(*args, **kwargs)
                finally:
                    if self.discrete:
                        platform.profiler_stop()

            return marked

        return decorate
