# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A machine with planted faults for ``verl-hw doctor``: its folders, its packages, and a miniature torch and verl.

The command and its child processes are real. The miniatures stand in for torch and verl where a fault needs nothing of
theirs but the names that are asked for, so that a case takes a second instead of ten.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from machine_speed import scaled

SECONDS = 280

TORCH = """
import types
from . import version
from .version import __version__
__file__ = __file__
cuda = types.SimpleNamespace(is_available=lambda: False, device_count=lambda: 0)
"""
DISTRIBUTED = """
class Backend:
    backend_list = ["undefined", "gloo"{more}]
def is_available(): return True
"""
# verl's own loop over its plugins, in short: what one raises is hidden.
VERL = """
import os
from importlib.metadata import entry_points
__version__ = "0.9.1"
_policy = os.getenv("VERL_USE_EXTERNAL_PLUGINS", "auto").strip().lower()
for _point in entry_points(group="verl.plugins") if _policy != "none" else ():
    if _policy == "auto" or _point.name in _policy.split(","):
        try:
            _point.load()
        except Exception:
            pass
"""
MANAGER = """
class PlatformNVIDIA:
    vendor_name, device_name = "nvidia", "cuda"
    def is_available(self): return False
    def communication_backend_name(self): return "nccl"
    def ray_resource_name(self): return "GPU"
class PlatformRegistry:
    _platforms = {"nvidia": PlatformNVIDIA}
    @classmethod
    def get(cls, name): return cls._platforms.get(name)
    @classmethod
    def registered_names(cls): return tuple(cls._platforms)
def get_platform(): return PlatformNVIDIA()
"""
ENGINES = """
class Engine: pass
class EngineRegistry:
    _engines = {
        "language_model": {"fsdp": {("acmedev", "acme"): Engine}},
        "value_model": {"fsdp": {("cuda", "nvidia"): Engine}},
    }
    @classmethod
    def get_engine_cls(cls, model_type, backend):
        found = cls._engines[model_type][backend].get(("acmedev", "acme"))
        if found is None:
            raise ValueError(f"No engine registered for model_type={model_type!r}, backend={backend!r}")
        return found
"""
CHECKPOINT = """
class CheckpointEngineRegistry:
    _registry = {"naive": object}
    _import_errors = {"acme_checkpoint_engine": ModuleNotFoundError("No module named 'vllm'")}
"""
ACME_SPEC = """
from verl_hw_core.facts.hardware import HardwareSpec, SmiTool, Traces
SPEC = HardwareSpec(
    key="acme", display_name="Acme NPU", distribution="verl-hw-acme", device_name="acmedev", aliases=("acmedev",),
    extension_module="torch_acme", ccl_backend="accl", visible_devices_envvar="ACME_VISIBLE_DEVICES",
    ray_resources=("ACME",), sdk_version_files=("/opt/acme/version.txt",),
    traces=Traces(torch_version_tag="+acme", packages=("torch_acme",), device_nodes=("/dev/acme[0-9]*",)),
)
"""


@dataclass(frozen=True)
class Answer:
    """What the doctor said."""

    code: int
    data: dict[str, Any]
    stderr: str

    def __getitem__(self, check: str) -> dict[str, Any]:
        return next(result for result in self.data["results"] if result["id"] == check)

    @property
    def bad(self) -> set[str]:
        """Ids of the checks that warn, fail or crash."""
        return {result["id"] for result in self.data["results"] if result["status"] in ("warn", "fail", "crash")}


def assert_found(answer: Answer, check: str, status: str, observed: str, mend: str) -> None:
    """One fault, by the right check, with what was seen and what to type."""
    found = answer[check]
    assert found["status"] == status, found
    assert observed in found["observed"] + found["details"], found
    assert mend in found["mend"], found
    assert found["expected"]
    assert found["why"]
    assert found["doc"].startswith("docs/doctor.md#")
    assert answer.code == (0 if status == "warn" and not _failed(answer) else 1)


def _failed(answer: Answer) -> bool:
    return any(result["status"] in ("fail", "crash") for result in answer.data["results"])


@dataclass(frozen=True)
class Patient:
    """A machine made of folders; its vendor wheels are those of this environment, and those that are planted."""

    folder: Path
    python: str = sys.executable

    @classmethod
    def make(cls, folder: Path) -> "Patient":
        """A machine without hardware, with miniatures of torch and verl."""
        patient = cls(folder)
        for name in ("site", "bin", "root", "home", "tmp"):
            (folder / name).mkdir()
        patient.torch("2.13.0+cpu")
        patient.module("verl/__init__.py", VERL)
        patient.module("verl/plugin/__init__.py", "")
        patient.module("verl/plugin/platform/__init__.py", "from .platform_manager import get_platform\n")
        patient.module("verl/plugin/platform/platform_manager.py", MANAGER)
        patient.module("verl/workers/__init__.py", "")
        patient.module("verl/workers/engine/__init__.py", "")
        patient.module("verl/workers/engine/base.py", ENGINES)
        patient.module("verl/checkpoint_engine/__init__.py", CHECKPOINT)
        return patient

    def with_real_stack(self, python: str = sys.executable) -> "Patient":
        """The same machine with the torch and the verl that the interpreter has, if any."""
        for name in ("torch", "verl"):
            shutil.rmtree(self.folder / "site" / name)
        return replace(self, python=python)

    def module(self, name: str, code: str) -> None:
        """A file on PYTHONPATH."""
        file = self.folder / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code, encoding="utf-8")

    def package(
        self,
        name: str,
        version: str,
        *,
        requires: Sequence[str] = (),
        points: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """The metadata of an installed distribution, with its entry points by group."""
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        lines = [
            "Metadata-Version: 2.1",
            f"Name: {name}",
            f"Version: {version}",
            *(f"Requires-Dist: {r}" for r in requires),
        ]
        self.module(f"{info}/METADATA", "\n".join(lines) + "\n")
        text = "".join(
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
            for group, entries in (points or {}).items()
        )
        self.module(f"{info}/entry_points.txt", text)

    def plugin(self, name: str, code: str) -> None:
        """A verl plugin of somebody else."""
        self.module(f"plugin_{name}.py", code)
        self.package(f"plugin-{name}", "1.0", points={"verl.plugins": {name: f"plugin_{name}"}})

    def wheel(self, key: str, spec: str, *, requires: str = "verl-hw-core>=0.1,<0.2", code: str = "") -> None:
        """A vendor wheel of our family; ``code`` is what its import does."""
        self.module(f"verl_hw_{key}/__init__.py", code)
        self.module(f"verl_hw_{key}/spec.py", spec)
        self.package(f"verl-hw-{key}", "1.0", requires=[requires], points={"verl.plugins": {key: f"verl_hw_{key}"}})

    def torch(self, version: str, *, code: str = "", backends: str = "") -> None:
        """The miniature torch; ``code`` is added to it."""
        self.module("torch/__init__.py", TORCH + code)
        self.module("torch/version.py", f"__version__ = {version!r}\n")
        self.module("torch/distributed.py", DISTRIBUTED.format(more=backends))

    def acme(self, *, extension: str, count: int = 2, names: str = "", backends: str = ', "accl"') -> None:
        """A vendor that does not exist, with its wheel, its card and its torch extension."""
        self.wheel("acme", ACME_SPEC)
        self.node("acme0")
        self.torch("2.13.0+acme", backends=backends)
        self.module("torch_acme.py", extension or ACME_EXTENSION.format(count=count, names=names))

    def tool(self, name: str, body: str) -> None:
        """A management tool on PATH."""
        file = self.folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)

    def node(self, name: str) -> None:
        """A device node."""
        self.file(f"dev/{name}", "")

    def file(self, name: str, text: str) -> None:
        """A file below the root that stands in for "/"."""
        file = self.folder / "root" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def environment(self, **more: str) -> dict[str, str]:
        """The whole environment of the command."""
        return {
            "PATH": str(self.folder / "bin"),
            "HOME": str(self.folder / "home"),
            "XDG_CACHE_HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "RAY_TMPDIR": str(self.folder / "tmp"),
            "PYTHONPATH": str(self.folder / "site"),
            "VERL_HW_PROBE_ROOT": str(self.folder / "root"),
            "OMP_NUM_THREADS": "1",
            "NO_COLOR": "1",
            **more,
        }

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Start ``verl-hw`` with these arguments."""
        return subprocess.Popen(
            [self.python, "-c", "from verl_hw_tools.cli import main; main()", *arguments],
            env=self.environment(**environment),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run ``verl-hw`` with these arguments."""
        process = self.start(*arguments, **environment)
        try:
            out, err = process.communicate(timeout=scaled(SECONDS))
        except subprocess.TimeoutExpired:
            process.terminate()  # it ends its children; a kill would leave them
            process.communicate(timeout=scaled(SECONDS))
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def doctor(self, *arguments: str, **environment: str) -> Answer:
        """Run ``verl-hw doctor --json``; its standard output must be JSON and nothing else."""
        done = self.run("doctor", "--json", *arguments, **environment)
        assert done.stdout, done.stderr
        return Answer(done.returncode, json.loads(done.stdout), done.stderr)


ACME_EXTENSION = """
import sys, types, torch
class Module(types.SimpleNamespace):
    pass
names = "Event Stream current_stream stream get_device_name get_device_properties max_memory_allocated "
names += "max_memory_reserved mem_get_info memory memory_allocated memory_reserved set_per_process_memory_fraction "
names += "reset_accumulated_memory_stats reset_peak_memory_stats ipc_collect "
names += "current_device set_device synchronize empty_cache get_rng_state set_rng_state"
without = "{names}".split()
torch.acmedev = Module(**{{name: (lambda *_: "Acme 1") for name in names.split() if name not in without}})
torch.acmedev.is_available = lambda: True
torch.acmedev.device_count = lambda: {count}
"""


def bare_environment(folder: Path, without: Sequence[str]) -> str:
    """Make an environment with this one's packages but those whose names begin so; return its interpreter."""
    import pytest

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=scaled(SECONDS))
    site = next((folder / "lib").glob("python*/site-packages"))
    for entry in Path(pytest.__file__).resolve().parents[1].iterdir():
        if not entry.name.startswith(tuple(without)) or entry.name.startswith("verl_hw_"):
            (site / entry.name).symlink_to(entry)
    return str(folder / "bin" / "python")
