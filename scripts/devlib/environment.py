# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The locked environment: finds or installs uv, then lets uv build ``.venv`` from ``uv.lock``."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from devlib.console import DevError, call, say

ROOT = Path(__file__).resolve().parents[2]

# Installed into .uv/ where PATH has no uv that is new enough.
PRIVATE_UV = "0.13.9"
# Set to 1 to use the private uv even where PATH has one: what a machine without uv gets.
PRIVATE_UV_SWITCH = "VERL_HW_DEV_PRIVATE_UV"
PRIVATE_UV_DIR = ROOT / ".uv"
GIB = 1024**3
NEEDED_GIB = 10


def check_compiler() -> None:
    """Refuse to go on where the simulator cannot be compiled.

    Raises:
        DevError: No C++ compiler.
    """
    named = os.environ.get("CXX", "").split()
    if any(shutil.which(compiler) for compiler in (*named[:1], "c++", "g++", "clang++")):
        return
    raise DevError(
        "needs a C++ compiler for the simulator, and found none (c++, g++, clang++ or $CXX).\n"
        "        Debian and Ubuntu:  sudo apt-get install g++\n"
        "        Fedora and RHEL:    sudo dnf install gcc-c++"
    )


def environment_dir() -> Path:
    """Where uv puts the project's environment."""
    return ROOT / os.environ.get("UV_PROJECT_ENVIRONMENT", ".venv")


def executable(name: str) -> str:
    """Path of one of the environment's own executables."""
    return str(environment_dir() / "bin" / name)


def child_env(uv: str) -> dict[str, str]:
    """Environment variables for what runs inside: its executables and this uv first on PATH."""
    env = dict(os.environ)
    env.pop("PYTHONHOME", None)
    env["VIRTUAL_ENV"] = str(environment_dir())
    env["PATH"] = os.pathsep.join([str(environment_dir() / "bin"), str(Path(uv).parent), env.get("PATH", os.defpath)])
    return env


def find_uv() -> str:
    """Path of a uv that can read the workspace: the one on PATH, or a private one in ``.uv/``.

    Raises:
        DevError: There is none and it could not be installed.
    """
    on_path = None if os.environ.get(PRIVATE_UV_SWITCH) == "1" else shutil.which("uv")
    if on_path and _is_new_enough(on_path):
        return on_path
    private = PRIVATE_UV_DIR / "bin" / "uv"
    if not (private.exists() and _is_new_enough(str(private))):
        _install_private_uv()
    return str(private)


def sync(uv: str) -> None:
    """Make the environment exactly what the lock says.

    Raises:
        DevError: uv could not do it; it has said why.
    """
    free = shutil.disk_usage(ROOT).free
    if not environment_dir().exists() and free < NEEDED_GIB * GIB:
        say(f"warning: {free / GIB:.1f} GiB free; the environment (PyTorch, Ray) may need up to {NEEDED_GIB} GiB")
    command = [uv, "sync", "--locked", "--all-packages", "--group", "dev", *_interpreter()]
    env = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME")}
    say("== environment (uv sync; the first time it downloads PyTorch, Ray and verl)")
    if call(command, cwd=ROOT, env=env) != 0:
        raise DevError(
            "uv could not make the environment (its message is above).\n"
            "        No connection: check that this machine reaches the package index, then type the same again.\n"
            "        'invalid peer certificate': a proxy opens TLS; export SSL_CERT_FILE=<its certificates, PEM>\n"
            "        'lockfile needs to be updated': a pyproject.toml changed; type  uv lock  and commit uv.lock"
        )


def _interpreter() -> list[str]:
    """Options that name the environment's Python.

    Its present one where that is supported, so that nothing is rebuilt; otherwise the one that runs this, unless
    it came without its C headers (Debian's python3 without python3-dev), which the simulator is compiled with.
    """
    present = environment_dir() / "bin" / "python"
    config = environment_dir() / "pyvenv.cfg"
    if present.exists() and config.exists():
        found = re.search(r"^version(?:_info)?\s*=\s*3\.(\d+)", config.read_text(encoding="utf-8"), re.MULTILINE)
        if found and 10 <= int(found.group(1)) <= 12:
            return ["--no-python-downloads", "--python", str(present)]
    if (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return ["--no-python-downloads", "--python", sys.executable]
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    say(f"note: {sys.executable} has no Python.h (sudo apt-get install python{minor}-dev); uv fetches its own Python")
    return ["--managed-python", "--python", minor]


def _is_new_enough(uv: str) -> bool:
    wanted = re.search(r'required-version = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    try:
        answer = subprocess.run([uv, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    found = re.search(r"uv (\d+(?:\.\d+)*)", answer)
    return bool(wanted and found) and _parts(found.group(1)) >= _parts(wanted.group(1))  # type: ignore[union-attr]


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _install_private_uv() -> None:
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        minor = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise DevError(
            f"needs uv, or Python's venv module to install it with, and {sys.executable} has no venv.\n"
            f"        Debian and Ubuntu:  sudo apt-get install python{minor}-venv"
        )
    say(f"== uv {PRIVATE_UV} into {PRIVATE_UV_DIR.name}/ (no uv on PATH that is new enough)")
    env = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH")}
    pip = [str(PRIVATE_UV_DIR / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    for step in (
        [sys.executable, "-m", "venv", "--clear", str(PRIVATE_UV_DIR)],
        [*pip, "install", f"uv=={PRIVATE_UV}"],
    ):
        if call(step, cwd=ROOT, env=env) != 0:
            raise DevError(
                f"could not install uv ({' '.join(step)} failed, its message is above).\n"
                "        Check that this machine reaches the package index, or install uv another way:\n"
                "        https://docs.astral.sh/uv/getting-started/installation/"
            )
