# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Child processes of a release: bounded, and an error that shows what was said."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SECONDS = 1800


class ReleaseError(Exception):
    """This release cannot be made as things are; the message says why and what to do."""


def tool(name: str) -> str:
    """Path of a command of the locked environment."""
    return str(Path(sys.executable).with_name(name))


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    what: str,
    env: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> str:
    """Run a command and return its standard output.

    Args:
        command: The command, no shell.
        cwd: Its folder.
        what: What it does, for the error.
        env: Its environment instead of this process's.
        seconds: How long it may take.

    Raises:
        ReleaseError: It failed, or took too long.
    """
    words = [str(part) for part in command]
    try:
        done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise ReleaseError(f"{what} took more than {seconds:.0f} s: {' '.join(words)}") from error
    except OSError as error:
        raise ReleaseError(f"{what}: {words[0]} cannot be started ({error}): python3 scripts/dev.py sync") from error
    if done.returncode != 0:
        raise ReleaseError(
            f"{what} failed (exit status {done.returncode}): {' '.join(words)}\n{(done.stdout + done.stderr)[-6000:]}"
        )
    return done.stdout
