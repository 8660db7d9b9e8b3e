# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Find a Python of a given release on this machine, with the C headers that the simulator is compiled with."""

import shutil
import subprocess
from pathlib import Path

from devlib.console import DevError

_ASK = (
    "import pathlib, sys, sysconfig; header = pathlib.Path(sysconfig.get_path('include'), 'Python.h');"
    "print('%d.%d' % sys.version_info[:2], header.exists())"
)


def find_interpreter(release: str) -> str:
    """Return the path of a Python of that release: on PATH, else one of pyenv.

    Args:
        release: As "3.10".

    Raises:
        DevError: There is none, or none with its headers; it says how to get one.
    """
    on_path = shutil.which(f"python{release}")
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{release}.*/bin/python"))
    found = [path for path in (on_path, *map(str, reversed(pyenv))) if path]
    answers = {path: _answer(path) for path in found}
    for path, answer in answers.items():
        if answer == f"{release} True":
            return path
    without = [path for path, answer in answers.items() if answer == f"{release} False"]
    what = (
        f"{without[0]} has no Python.h" if without else f"there is no python{release} on PATH or in ~/.pyenv/versions"
    )
    raise DevError(
        f"needs Python {release} with its headers, and {what}.\n"
        f"        Debian and Ubuntu:  sudo apt-get install python{release}-dev python{release}-venv\n"
        f"        pyenv:              pyenv install {release}"
    )


def _answer(python: str) -> str:
    """What an interpreter says of itself; nothing where it does not run, as pyenv's stand-in for another version."""
    try:
        done = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
