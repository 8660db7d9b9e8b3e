# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Facts for a bug report, ready to be pasted: what is installed, what is there, who is in force."""

import platform
import threading
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from verl_hw_core.detection.lookup import below, look_up, probe_root
from verl_hw_core.detection.torch_build import installed_build
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_tools.doctor.checks.system import memory_bytes
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.programs.plugins import PREFIX
from verl_hw_tools.doctor.redaction import Redactor
from verl_hw_tools.doctor.runner import load_verl, needs_full
from verl_hw_tools.doctor.stages import ChildReport
from verl_hw_tools.doctor.versions import installed_version
from verl_hw_tools.installed import CORE_DISTRIBUTION, PLUGIN_GROUP, TOOLS_DISTRIBUTION, name_of

SCHEMA_VERSION = 1
"""Version of the JSON form: raised when a name in it changes its meaning or goes."""

_PACKAGES = (
    *("verl", CORE_DISTRIBUTION, TOOLS_DISTRIBUTION, "verl-hw-sim", "ray", "tensordict", "transformers", "accelerate"),
    *("peft", "torchdata"),
    *("numpy", "vllm", "sglang", "flash-attn", "triton", "megatron-core", "mbridge", "transformer-engine", "deepspeed"),
)
_TOOLS = ("smi", "smi_hint")
_LONGEST_FILE = 4000


def collect(deadline: float = 120.0) -> dict[str, Any]:
    """Collect the facts, without secrets and without the names of user, home and host.

    verl's plugins are loaded in a child process; this one imports neither torch nor verl nor a vendor's package.

    Args:
        deadline: Seconds that a step of the child may take.
    """
    facts = Facts()
    report = ChildReport()
    if look_up("torch").spec is not None:
        report = load_verl(facts, full=needs_full(facts), deadline=deadline, stop=threading.Event())
    found = {
        "schema_version": SCHEMA_VERSION,
        "system": _system(),
        "packages": {name: version for name in _PACKAGES if (version := installed_version(name)) is not None},
        "torch": _torch(report),
        "vendors": [_vendor(spec, facts) for spec in facts.specs],
        "broken_wheels": [
            f"{wheel.distribution} {wheel.version}: {wheel.problem}" for wheel in facts.wheels if wheel.problem
        ],
        "verl_would_use": {"vendor": facts.choice.vendor, "because": facts.choice.because},
        "plugins": list(_plugins(report)),
        "platforms": report.data("platforms") or {},
        "platform": report.data("platform"),
        "engines": [row for row in (report.data("engines") or {"rows": []})["rows"] if row["engine"]],
        "devices": _devices(report),
        "problems": [f"{stage.name}: {stage.error}" for stage in report.stages.values() if not stage.went_well],
    }
    redactor = Redactor()
    clean: dict[str, Any] = _redacted(found, redactor)
    return {**clean, "environment": redactor.variables(facts.environ, facts.specs)}


def _system() -> dict[str, str]:
    memory = memory_bytes()
    return {
        "python": f"{platform.python_version()} ({platform.python_implementation()}, {platform.machine()})",
        "os": _os_name(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "container": _container(),
        "cpus": str(_cpus()),
        "memory": "unknown" if memory is None else f"{memory / 10**9:.0f} GB",
    }


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _container() -> str:
    for name, marks in (("docker", ("/.dockerenv",)), ("podman", ("/run/.containerenv",))):
        if any(Path(mark).exists() for mark in marks):
            return name
    try:
        groups = Path("/proc/1/cgroup").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    return next((name for name in ("kubepods", "docker", "containerd", "lxc") if name in groups), "none seen")


def _cpus() -> int:
    import os

    return len(os.sched_getaffinity(0))


def _torch(report: ChildReport) -> dict[str, Any]:
    """The build, from its files; the import's own word beside it."""
    build = installed_build()
    imported = report.data("torch")
    attributes = {} if build is None else {name: value for name, value in build.attributes.items() if name[:2] != "__"}
    return {
        "metadata": installed_version("torch"),
        "version_file": None if build is None else build.version,
        "build": {name: value for name, value in attributes.items() if value},
        "imported": None if imported is None else imported["version"],
        "where": None if imported is None else imported["file"],
    }


def _vendor(spec: HardwareSpec, facts: Facts) -> dict[str, Any]:
    finding = facts.survey.findings[spec.key]
    return {
        "vendor": spec.key,
        "distribution": spec.distribution,
        "version": installed_version(spec.distribution),
        "verdict": finding.verdict.value,
        "evidence": {item.kind: f"{item.verdict.value}: {item.why}" for item in finding.evidence},
        "packages": dict(_vendor_packages(spec)),
        "sdk": dict(_sdk(spec)),
        "tools": [item.why for item in finding.evidence if item.kind in _TOOLS and item.verdict.value != "absent"],
    }


def _vendor_packages(spec: HardwareSpec) -> Iterator[tuple[str, str]]:
    modules = dict.fromkeys([*spec.traces.packages, *([spec.extension_module] if spec.extension_module else [])])
    for module in modules:
        if look_up(module).spec is None:
            continue
        # A broken package has no name.
        owners = [owner for owner in metadata.packages_distributions().get(module, []) if owner]
        yield module, ", ".join(f"{owner} {installed_version(owner)}" for owner in owners) or "without a package"


def _sdk(spec: HardwareSpec) -> Iterator[tuple[str, str]]:
    for name in spec.sdk_version_files:
        file = below(probe_root(), name)
        try:
            lines = file.read_text(encoding="utf-8", errors="replace")[:_LONGEST_FILE].splitlines()
        except OSError:
            continue  # not installed there, or not for us to read
        yield name, next((line.strip() for line in lines if line.strip()), "empty")


def _plugins(report: ChildReport) -> Iterator[dict[str, str]]:
    for point in metadata.entry_points(group=PLUGIN_GROUP):
        stage = report.stages.get(PREFIX + point.name)
        state = "not loaded" if stage is None else stage.error or "loaded"
        owner = f"{name_of(point.dist)} {point.dist.version or 'unknown'}" if point.dist is not None else point.module
        yield {"name": point.name, "package": owner, "state": state}


def _devices(report: ChildReport) -> dict[str, Any]:
    data = report.data("runtime") or {}
    return {name: data[name] for name in ("count", "names", "ccl", "ccl_known") if name in data}


def _redacted(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, dict):
        # torch's own commit looks like a key and is none.
        return {name: inner if name == "git_version" else _redacted(inner, redactor) for name, inner in value.items()}
    if isinstance(value, Sequence):
        return [_redacted(inner, redactor) for inner in value]
    return value
