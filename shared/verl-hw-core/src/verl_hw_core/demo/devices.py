# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The environment of the training processes: which device they get, and nothing from the network."""

import importlib
import os
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from verl_hw_core.demo.failure import relevant_lines
from verl_hw_core.demo.processes import run_launcher
from verl_hw_core.errors import MissingComponentError
from verl_hw_core.hardware import HardwareSpec

# Import names that verl's SFT trainer needs here, with what provides them.
_NEEDED = {
    "torch": "the vendor's torch build, or: pip install torch",
    "verl": "pip install 'verl>=0.9'",
    "transformers": "pip install transformers",
    "tokenizers": "pip install tokenizers",
    "safetensors": "pip install safetensors",
    "pyarrow": "pip install pyarrow",
    # verl's trainers import these two for its rollout servers and its metadata does not name them.
    "uvicorn": "pip install uvicorn",
    "fastapi": "pip install fastapi",
}
# What a surrounding torchrun or an earlier choice would tell the children.
_NOT_INHERITED = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "MASTER_ADDR", "MASTER_PORT"),
    *("VERL_PLATFORM", "VERL_ENGINE_DEVICE", "VERL_ENGINE_VENDOR", "DIST_INIT_METHOD"),
    *("VERL_HW_SIM", "VERL_HW_SIM_LIMITS", "VERL_HW_PROBE_ROOT"),
)
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


def require_components(simulated: bool) -> None:
    """Check that what the demo runs is installed, without importing it.

    Raises:
        MissingComponentError: Something is missing; the message says how to get it.
    """
    needed = _NEEDED | ({"verl_hw_sim": "pip install verl-hw-sim"} if simulated else {})
    missing = [f"{name} ({remedy})" for name, remedy in needed.items() if find_spec(name) is None]
    if missing:
        raise MissingComponentError(f"the demo needs packages that are not installed: {'; '.join(missing)}")


def base_environment(inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """The user's environment without what would disturb a launch, offline, one thread per process."""
    environment = dict(os.environ if inherited is None else inherited)
    for name in [name for name in environment if name in _NOT_INHERITED or name.startswith("TORCHELASTIC_")]:
        del environment[name]
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


def real_device(spec: HardwareSpec) -> dict[str, str]:
    """What a launch needs to use the vendor's real devices; the user chose the vendor, so nothing is guessed."""
    return {"VERL_PLATFORM": spec.key}
