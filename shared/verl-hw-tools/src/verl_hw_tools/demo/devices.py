# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The environment of the training processes: which device they get, and nothing from the network."""

import importlib
import os
import re
import shlex
import sys
from collections.abc import Collection, Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from packaging.requirements import Requirement
from rich.console import Console
from rich.markup import escape

from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.processes import run_launcher
from verl_hw_tools.demo.failure import relevant_lines
from verl_hw_tools.errors import MissingComponentError

# Import names of what verl's trainers need here, with what pip installs them by.
_NEEDED = {
    "torch": "torch",
    "verl": "verl>=0.9",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "safetensors": "safetensors",
    "pyarrow": "pyarrow",
    # verl's trainers import these for its rollout servers and its plain metadata does not name them.
    "uvicorn": "uvicorn",
    "fastapi": "fastapi",
}
RL_NEEDS = {"ray": "ray", "transfer_queue": "TransferQueue>=0.1.10", "cachetools": "cachetools>=5"}
"""What verl's PPO trainer needs beside: Ray, and two packages that verl's plain metadata does not name."""

# What a surrounding launcher (torchrun, a job scheduler's PyTorch operator) would tell the children.
_LAUNCHER = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK"}
    | {"ROLE_NAME", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "DIST_INIT_METHOD"}
)
_LAUNCHER_PREFIXES = ("TORCHELASTIC_", "PET_")
# The user's choices of a device, which the demo's own options replace ...
_CHOICES = frozenset(
    {"VERL_PLATFORM", "VERL_ENGINE_DEVICE", "VERL_ENGINE_VENDOR", "VERL_FORCE_DEVICE"}
    | {"VERL_HW_SIM", "VERL_HW_SIM_LIMITS", "VERL_HW_PROBE_ROOT"}
)
# ... and those that would also keep a simulated device away; for real hardware they may be needed.
_SIMULATED_CHOICES = frozenset({"VERL_USE_EXTERNAL_PLUGINS", "TORCH_DEVICE_BACKEND_AUTOLOAD", "USE_FLAGCX"})
_QUIET_AND_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HYDRA_FULL_ERROR": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONWARNINGS": "ignore",
    "OMP_NUM_THREADS": "1",
}
_LONGEST_BUILD_SECONDS = 900.0
# The simulator's own error, which says what to do; torch wraps it in one that does not.
_SIMULATOR_ERROR = re.compile(r"^verl_hw_sim\.errors\.\w+: (?P<reason>.+?)(?:^\n|\Z)", re.DOTALL | re.MULTILINE)


def require_components(simulated: bool, more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Check that what the demo runs is installed, without importing it.

    Args:
        simulated: Whether the simulator is needed too.
        more: Import names of what else is needed, with pip's requirement.

    Raises:
        MissingComponentError: Something is missing or too old; the message says how to get it.
    """
    needed = {**_NEEDED, **more, **({"verl_hw_sim": "verl-hw-sim"} if simulated else {})}
    missing = [remedy for remedy in (_missing(name, text) for name, text in needed.items()) if remedy]
    if missing:
        raise MissingComponentError(
            f"the demo needs packages that are not installed: {'; '.join(missing)}. Together: "
            "pip install 'verl-hw-tools[demo]' verl-hw-sim (with --find-links dist for wheels that you built)"
        )


def _missing(name: str, text: str) -> str | None:
    """Say how to get a package that is not there or too old."""
    vendors_own = "the vendor's torch build, or: " if name == "torch" else ""
    if find_spec(name) is None:
        return f"{name} ({vendors_own}pip install {shlex.quote(text)})"
    requirement = Requirement(text)
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return None  # a source tree on the path
    if requirement.specifier.contains(version, prereleases=True):
        return None
    return f"{name} {version} is too old (pip install -U {shlex.quote(text)})"


def ignored_choices(spec: HardwareSpec, *, simulated: bool, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Names of the variables that are set and would choose another device than the demo is to show."""
    masks = {spec.visible_devices_envvar, *spec.overriding_visible_envvars}
    ignored = _CHOICES | (_SIMULATED_CHOICES | masks if simulated else set())
    return sorted(name for name in environment if name in ignored)


def base_environment(ignored: Collection[str] = _CHOICES, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The user's environment without what would disturb a launch, offline, one thread per process.

    Args:
        ignored: Names to leave out beside those that a surrounding launcher sets.
        inherited: The user's environment.
    """
    environment = {
        name: value
        for name, value in inherited.items()
        if name not in _LAUNCHER and name not in ignored and not name.startswith(_LAUNCHER_PREFIXES)
    }
    if "PYTHONPATH" in environment:
        # The children run in another folder.
        entries = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in entries if entry)
    return environment | _QUIET_AND_OFFLINE


def simulated_device(spec: HardwareSpec, devices: int) -> dict[str, str]:
    """What a launch needs in its environment to get simulated devices.

    Raises:
        MissingComponentError: The simulator does not know this vendor.
    """
    simulator = importlib.import_module("verl_hw_sim")
    simulator_error: type[Exception] = importlib.import_module("verl_hw_sim.errors").SimulatorError
    try:
        return dict(simulator.simulated_environment(spec.key, devices))
    except simulator_error as error:
        raise MissingComponentError(
            f"{spec.display_name} cannot be simulated: {error} On a machine that has the hardware, use --real."
        ) from error


def prepare_simulator(environment: Mapping[str, str], folder: Path, log: Path) -> None:
    """Start a simulated device once, in a process of its own, so that what must be compiled is compiled now.

    Raises:
        MissingComponentError: It does not start, as without a C++ compiler.
    """
    code = run_launcher(
        [sys.executable, "-c", "import torch"],
        environment=environment,
        folder=folder,
        log=log,
        watch=lambda: None,
        stall_seconds=_LONGEST_BUILD_SECONDS,
    )
    if code != 0:
        text = log.read_text(encoding="utf-8", errors="replace")
        said = _SIMULATOR_ERROR.search(text)
        reason = said["reason"].strip() if said else "\n".join(relevant_lines(text))
        raise MissingComponentError(f"the simulated device does not start: {reason}\nfull log: {log}")


def environment_of(
    spec: HardwareSpec, *, real: bool, devices: int, folder: Path, log: Path, console: Console
) -> dict[str, str]:
    """The environment of a launch; a simulated device is compiled now if it never was.

    Args:
        spec: The vendor.
        real: Use the vendor's hardware.
        devices: Number of simulated devices.
        folder: Working directory of the simulator's first start.
        log: File for its output.
        console: Where to say what is done.

    Raises:
        MissingComponentError: There is no simulated device of this vendor, or it does not start.
    """
    ignored = ignored_choices(spec, simulated=not real)
    if ignored:
        console.print(f"Not used by the demo: {', '.join(ignored)}", highlight=False, soft_wrap=True)
    base = base_environment(ignored)
    if real:
        return base | real_device(spec)
    doing = f"Preparing a simulated {escape(spec.display_name)} (compiled the first time, about a minute)"
    if not console.is_terminal:
        console.print(doing, highlight=False, soft_wrap=True)  # a status line shows on terminals only
    with console.status(doing):
        environment = base | simulated_device(spec, devices)
        prepare_simulator(environment, folder, log)
    return environment


def real_device(spec: HardwareSpec) -> dict[str, str]:
    """What a launch needs to use the vendor's real devices; the user chose the vendor, so nothing is guessed."""
    return {"VERL_PLATFORM": spec.key}
