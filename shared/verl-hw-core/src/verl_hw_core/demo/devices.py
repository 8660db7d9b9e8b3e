# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The environment of the training processes: which device they get, and nothing from the network."""

import importlib
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

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
    *("VERL_PLATFORM", "VERL_ENGINE_DEVICE", "VERL_ENGINE_VENDOR", "VERL_HW_SIM", "DIST_INIT_METHOD"),
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
    """What a launch needs in its environment to get simulated devices; builds the simulator when that is due.

    Raises:
        MissingComponentError: The simulator cannot be built here, as without a C++ compiler.
    """
    simulator = importlib.import_module("verl_hw_sim")
    environment: dict[str, str] = simulator.simulated_environment(spec.key, devices)
    return environment


def real_device(spec: HardwareSpec) -> dict[str, str]:
    """What a launch needs to use the vendor's real devices; the user chose the vendor, so nothing is guessed."""
    return {"VERL_PLATFORM": spec.key}
