# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Tools of the packaging tests: bounded child processes, throw-away packages, stand-in distributions."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from machine_speed import scaled

ROOT = Path(__file__).resolve().parents[2]
# Vendor wheels: entry point and platform key -> torch device type. Stated here, not read from the wheels under test.
VENDORS = {"cambricon": "mlu", "enflame": "gcu", "intel": "xpu", "metax": "cuda"}
# The interpreter below the environment that runs the tests, so that its packages are not seen. By its path: of a name
# such as 3.10 the machine may know another one, or none.
BASE_PYTHON = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
# Every child here ends by itself in well under this.
CHILD_SECONDS = 240

_OWN_VARIABLES = re.compile(r"(VERL|RAY|TORCH|PYTHON|UV)_?|VIRTUAL_ENV|COVERAGE")
_UNREACHABLE = re.compile(
    r"error sending request|dns error|connect(ion)? (error|refused|reset|timed out)|failed to fetch|timed? ?out"
    r"|temporary failure in name resolution|network is unreachable|newconnectionerror|max retries exceeded",
    re.IGNORECASE,
)


def uv() -> str:
    """Path of the environment's own uv."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    assert found, "no uv: type  python3 scripts/dev.py sync"
    return found


def clean_env(**extra: str) -> dict[str, str]:
    """This process's environment without anything that steers verl, Ray, torch, Python or uv; offline for models."""
    env = {name: value for name, value in os.environ.items() if not _OWN_VARIABLES.match(name)}
    for name in ("UV_CACHE_DIR", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_FIND_LINKS", "UV_NATIVE_TLS"):
        if name in os.environ:
            env[name] = os.environ[name]
    return {**env, "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", **extra}


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = True,
    seconds: float = CHILD_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run a command with a time limit; with ``check``, a failure fails the test and shows the output."""
    done = subprocess.run(
        [str(part) for part in command],
        env=dict(clean_env() if env is None else env),
        cwd=cwd or tempfile.gettempdir(),  # not the workspace, whose settings uv would apply
        capture_output=True,
        text=True,
        timeout=scaled(seconds),
        check=False,
    )
    if check and done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))}\nexit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


# Begins every child that looks at verl: says which plugins would be found, and what `import verl` left behind.
SURVEY = """
import json, sys
def platforms():
    from verl.plugin.platform.platform_manager import PlatformRegistry
    return {name: PlatformRegistry.get(name).__module__ for name in PlatformRegistry.registered_names()}
def engines():
    from verl.workers.engine.base import EngineRegistry
    return sorted(
        [key[1], key[0], model, backend, cls.__module__]
        for model, backends in EngineRegistry._engines.items()
        for backend, keys in backends.items()
        for key, cls in keys.items() if isinstance(key, tuple)
    )
def frozen():
    from verl.plugin.platform import platform_manager
    return platform_manager._current_platform is not None
def workers():
    return sorted(name for name in sys.modules if name.startswith("verl.workers"))
def problems():
    from verl_hw_core import load_report
    return [[one.wheel, one.stage, one.message, one.traceback] for one in load_report.problems()]
def answer(**what):
    print(json.dumps(what))
"""


def our_engines(*vendors: str) -> set[tuple[str, ...]]:
    """What :data:`SURVEY`'s ``engines()`` holds, as tuples, for vendors whose wheels registered all that they have."""
    return {
        (vendor, VENDORS[vendor], model, backend, f"verl_hw_{vendor}.engines")
        for vendor in vendors
        for model in ("language_model", "value_model")
        for backend in ("fsdp", "fsdp2", "megatron")
    }


@dataclass(frozen=True)
class Answer:
    """What a child said: its JSON answer (empty without one), and everything on its standard error."""

    data: dict[str, Any]
    stderr: str

    @classmethod
    def of(cls, stdout: str, stderr: str) -> "Answer":
        """The answer is the last line of standard output."""
        lines = stdout.strip().splitlines()
        return cls(json.loads(lines[-1]) if lines else {}, stderr)

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    @property
    def warnings(self) -> list[str]:
        """Lines that came from the core's logger, the only one that names our wheels first."""
        return [line for line in self.stderr.splitlines() if line.startswith("WARNING") and ":verl-hw-" in line]


def survey(
    script: str, *, first: Sequence[Path] = (), last: Sequence[Path] = (), env: Mapping[str, str] | None = None
) -> Answer:
    """Run a script after :data:`SURVEY` in a fresh interpreter; it must end in ``answer(name=value, ...)``.

    Args:
        script: The child's code.
        first: Folders put before everything on ``sys.path``, so that their plugins load before ours.
        last: Folders put after everything, so that their plugins load after ours.
        env: Further environment variables.
    """
    path = f"import sys\nsys.path[:0] = {[str(one) for one in first]!r}\nsys.path += {[str(one) for one in last]!r}\n"
    done = run([sys.executable, "-c", path + SURVEY + script], env=clean_env(**(env or {})))
    return Answer.of(done.stdout, done.stderr)


def from_index(
    command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command that needs the package index: without an index the test is skipped, in CI it fails."""
    done = run(command, env=env, cwd=cwd, check=False)
    said = done.stdout + done.stderr
    if done.returncode != 0 and _UNREACHABLE.search(said):
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(f"the package index is not reachable: {said[-1500:]}")
        pytest.skip(f"the package index is not reachable: {said.strip().splitlines()[-1]}")
    return done


def tiny_package(
    folder: Path, module: str, code: str, *, entry_points: Mapping[str, str] | None = None, requires: Sequence[str] = ()
) -> Path:
    """Write an installed-looking package (module and dist-info) into ``folder``, which goes on ``PYTHONPATH``."""
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    (info / "METADATA").write_text(_metadata(module.replace("_", "-"), "1.0", requires), encoding="utf-8")
    (info / "RECORD").write_text("", encoding="utf-8")
    if entry_points:
        lines = "\n".join(f"{name} = {target}" for name, target in entry_points.items())
        (info / "entry_points.txt").write_text(f"[verl.plugins]\n{lines}\n", encoding="utf-8")
    return folder


def tiny_wheel(folder: Path, name: str, version: str, *, requires: Sequence[str] = ()) -> Path:
    """Write a wheel that holds one empty module, as a stand-in for a distribution no index offers."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    files = {
        f"{module}.py": f"__version__ = {version!r}\n",
        f"{info}/METADATA": _metadata(name, version, requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: wheelkit\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    wheel = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return wheel


def _metadata(name: str, version: str, requires: Sequence[str]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    return "\n".join([*lines, *(f"Requires-Dist: {requirement}" for requirement in requires)]) + "\n"
