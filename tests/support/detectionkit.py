# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for detection tests: specs of the four vendors, a machine made of folders, surveys in fresh processes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine_speed
from machine_speed import scaled

from verl_hw_core.facts.hardware import HardwareSpec, SmiTool, Traces

SUPPORT = Path(__file__).resolve().parent
CORE = SUPPORT.parents[1] / "shared" / "verl-hw-core" / "src"

# The default of ``survey``. A tool that is to answer gets more on a slow machine; one that hangs does so for ever.
DEADLINE_S = 2.0

OK = "echo 'card 0: fine'; exit 0"
HANGS = "exec /bin/sleep 60"
# The child keeps stdout open after its parent is gone; its pid is written down before.
SPAWNS = '/bin/sleep 60 & echo "$!" > "$0.pid"; exec /bin/sleep 60'
SPAWNS_AND_EXITS = '/bin/sleep 60 & echo "$!" > "$0.pid"; echo started; exit 0'


def make_spec(key: str, device_name: str, traces: Traces, **more: Any) -> HardwareSpec:
    more.setdefault("visible_devices_envvar", f"{key.upper()}_VISIBLE")
    return HardwareSpec(
        key=key,
        display_name=key,
        distribution=f"verl-hw-{key}",
        device_name=device_name,
        ccl_backend="ccl",
        ray_resources=("GPU",),
        traces=traces,
        **more,
    )


# From public documents of the vendors; deliberately not the specs of the wheels.
INTEL = make_spec(
    "intel",
    "xpu",
    Traces(
        torch_version_tag="+xpu",
        torch_version_attribute="xpu",
        pci_vendor="0x8086",
        pci_identifies_vendor=False,
        smi=(SmiTool(command="xpu-smi", args=("discovery",), identifies_vendor=False),),
    ),
    visible_devices_envvar="ZE_AFFINITY_MASK",
    filtering_envvars=("ONEAPI_DEVICE_SELECTOR",),
    mask_order="ascending",
    subdevice_mask=True,
    detection_rank=40,
)
CAMBRICON = make_spec(
    "cambricon",
    "mlu",
    Traces(
        packages=("torch_mlu",),
        device_nodes=("/dev/cambricon_ctl", "/dev/cambricon_dev[0-9]*"),
        pci_vendor="0xcabc",
        smi=(SmiTool(command="cnmon", args=("info",)),),
    ),
    visible_devices_envvar="MLU_VISIBLE_DEVICES",
    overriding_visible_envvars=("CN_VISIBLE_DEVICES",),
    detection_rank=20,
)
METAX = make_spec(
    "metax",
    "cuda",
    Traces(
        torch_version_tag="+metax",
        packages=("pymxsml",),
        device_nodes=("/dev/mxcd",),
        pci_vendor="0x9999",
        smi=(SmiTool(command="mx-smi", args=("-L",), paths=("/opt/mxdriver/bin", "/opt/maca/bin")),),
    ),
    visible_devices_envvar="CUDA_VISIBLE_DEVICES",
    overriding_visible_envvars=("MACA_VISIBLE_DEVICES",),
    detection_rank=30,
)
ENFLAME = make_spec(
    "enflame",
    "gcu",
    Traces(
        packages=("torch_gcu",),
        device_nodes=("/dev/gcuctl", "/dev/gcu[0-9]*"),
        pci_vendor="0x1e36",
        smi=(SmiTool(command="efsmi", paths=("/usr/sbin",)),),
    ),
    visible_devices_envvar="TOPS_VISIBLE_DEVICES",
    detection_rank=10,
)
SPECS = (INTEL, CAMBRICON, METAX, ENFLAME)
TOOLS = {"intel": "xpu-smi", "cambricon": "cnmon", "metax": "mx-smi", "enflame": "efsmi"}


@dataclass(frozen=True)
class Machine:
    """A machine made of folders: its file system root, its ``PATH`` folder and its site-packages."""

    root: Path
    bin: Path
    site: Path
    cache: Path

    @classmethod
    def make(cls, folder: Path) -> "Machine":
        machine = cls(folder / "root", folder / "bin", folder / "site", folder / "cache")
        for part in (machine.root, machine.bin, machine.site, machine.cache):
            part.mkdir(parents=True)
        machine.torch("2.13.0+cpu")
        return machine

    def tool(self, name: str, body: str, *, folder: str | None = None, mode: int = 0o755) -> Path:
        place = self.bin if folder is None else self.root / folder.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        file = place / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(mode)
        return file

    def node(self, name: str) -> None:
        self.file(f"dev/{name}", "")

    def pci(self, address: str, vendor: str, pci_class: str) -> None:
        self.file(f"sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
        self.file(f"sys/bus/pci/devices/{address}/class", f"{pci_class}\n")

    def file(self, name: str, content: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def torch(self, version: str, *, xpu: str | None = None, extension_device: str | None = None) -> None:
        """A torch that works like the real one as far as detection may look, and ends the process beyond that."""
        package = self.site / "torch"
        package.mkdir(exist_ok=True)
        package.joinpath("version.py").write_text(
            f"from typing import Optional\n__version__ = {version!r}\nxpu: Optional[str] = {xpu!r}\n"
            "cuda: Optional[str] = '11.6'\n"
        )
        package.joinpath("__init__.py").write_text(
            "import types\nfrom . import version\nfrom .version import __version__\n"
            "def _forbidden(*_): raise SystemExit('detection called a runtime function')\n"
            "_C = types.SimpleNamespace(_get_privateuse1_backend_name="
            f"lambda: {extension_device or 'privateuseone'!r})\n"
            "for _name in ('xpu', 'cuda', 'mlu', 'gcu'):\n"
            "    globals()[_name] = types.SimpleNamespace(_is_compiled=lambda: False, is_available=_forbidden,\n"
            "        device_count=_forbidden, current_device=_forbidden, get_device_properties=_forbidden)\n"
        )

    def package(self, name: str) -> None:
        (self.site / name).mkdir()
        (self.site / name / "__init__.py").write_text(f"raise SystemExit('{name} was imported')\n")

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": str(self.bin),
            "HOME": str(self.cache),
            "XDG_CACHE_HOME": str(self.cache),
            "TMPDIR": str(self.cache),
            "PYTHONPATH": os.pathsep.join((str(self.site), str(CORE), str(SUPPORT))),
            "VERL_HW_PROBE_ROOT": str(self.root),
            machine_speed.VARIABLE: str(machine_speed.factor()),
            **more,
        }

    def start(self, *, before: str = "", call: str = "", **environment: str) -> "subprocess.Popen[str]":
        """Starts a survey in a fresh process; ``before`` is run first, ``call`` are arguments of ``survey``."""
        code = f"import detectionkit as kit\n{before}\nkit.report({call})"
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env=self.environment(**environment),
            cwd=self.cache,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def survey(self, *, before: str = "", call: str = "", **environment: str) -> dict[str, Any]:
        return answer_of(self.start(before=before, call=call, **environment))


def answer_of(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, err = process.communicate(timeout=scaled(60))
    assert process.returncode == 0, err
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def report(specs: Sequence[HardwareSpec] = SPECS, **options: Any) -> None:
    """Runs in the fresh process: surveys and prints what was found and what was changed on the way."""
    from verl_hw_core.detection import survey

    options.setdefault("deadline_s", scaled(DEADLINE_S))
    environment, modules = dict(os.environ), set(sys.modules)
    started = time.monotonic()
    found = survey(specs, **options)
    seconds = time.monotonic() - started
    print(
        json.dumps(
            {
                "chosen": found.chosen,
                "conflict": found.conflict,
                "message": found.conflict_message(),
                "verdicts": {key: finding.verdict.value for key, finding in found.findings.items()},
                "evidence": {
                    key: {item.kind: [item.verdict.value, item.why] for item in finding.evidence}
                    for key, finding in found.findings.items()
                },
                "seconds": seconds,
                "environment_changed": dict(os.environ) != environment,
                "new_modules": sorted(set(sys.modules) - modules),
                "children": children(),
            }
        )
    )


def children() -> list[int]:
    """Processes, zombies included, whose parent is this process."""
    return [pid for pid, (parent, _) in _processes().items() if parent == os.getpid()]


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie that its (foreign) parent has yet to collect."""
    return _processes().get(pid, (0, "Z"))[1] not in ("Z", "X")


def _processes() -> Mapping[int, tuple[int, str]]:
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        found[int(stat.parent.name)] = (int(parent), state)
    return found
