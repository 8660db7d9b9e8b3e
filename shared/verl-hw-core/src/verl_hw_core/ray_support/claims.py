# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which bundle of a placement group uses which card of this node: one JSON file in Ray's session folder.

verl gives each device a bundle, and the actors of a bundle share its device. So a card belongs to at most one bundle,
and a bundle keeps its card when an actor restarts. The file makes both true where Ray does not tell devices apart, and
is the last check where it does: masks of all kinds, also wrong ones, end in two cards or in an error.

A file under a lock and not an actor: it cannot die alone, needs no process, and goes with Ray's session.
"""

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from verl_hw_core.errors import DeviceAssignmentError

LOCK_SECONDS = 60.0
"""Longest wait for the other workers of the node; each holds the lock for some milliseconds."""


class Claims:
    """The cards of one node.

    Args:
        file: The node's file; folders above it are created.
        is_alive: Whether a holder, as ``"<placement group>/<bundle>"``, still exists.
    """

    def __init__(self, file: Path, is_alive: Callable[[str], bool]) -> None:
        self._file = file
        self._is_alive = is_alive

    def take(self, holder: str, candidates: Sequence[str]) -> str:
        """Give a bundle one of the cards that it may have: the one that it has already, or the first that is free.

        Raises:
            DeviceAssignmentError: All candidates belong to bundles that still exist, or the file cannot be used.
        """
        from filelock import FileLock, Timeout

        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self._file.with_suffix(".lock"), timeout=LOCK_SECONDS):
                held = self._read()
                card = self._choose(holder, candidates, held)
                self._write({**{other: its for other, its in held.items() if its not in (holder, None)}, card: holder})
        except Timeout as error:
            raise DeviceAssignmentError(
                f"{self._file.with_suffix('.lock')} was locked by another worker for {LOCK_SECONDS:g} s: look for a "
                "stopped worker process on this node"
            ) from error
        except (OSError, ValueError) as error:
            raise DeviceAssignmentError(
                f"{self._file}, which says what devices of this node are in use, cannot be used: {error}. Stop the "
                "job, delete the file, start again"
            ) from error
        return card

    def _choose(self, holder: str, candidates: Sequence[str], held: dict[str, str]) -> str:
        own = [card for card in candidates if held.get(card) == holder]
        free = [card for card in candidates if card not in held]
        if own or free:
            return (own or free)[0]
        for card in candidates:
            if not self._is_alive(held[card]):
                return card
        users = ", ".join(f"{card} by {held[card]}" for card in candidates)
        raise DeviceAssignmentError(
            f"No device of this node is left for bundle {holder} (placement group/bundle): "
            f"{users or 'the process sees none'}. Two workers would share a card: check that Ray was started with as "
            "many devices as the node has, and that no visible-devices variable is set for the job alone"
        )

    def _read(self) -> dict[str, str]:
        try:
            content = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        if not isinstance(content, dict):
            raise ValueError("it holds no JSON object")
        return {str(card): str(holder) for card, holder in content.items()}

    def _write(self, held: dict[str, str]) -> None:
        handle, temporary = tempfile.mkstemp(dir=self._file.parent, prefix=".new-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(held, file, indent=1, sort_keys=True)
        Path(temporary).replace(self._file)
