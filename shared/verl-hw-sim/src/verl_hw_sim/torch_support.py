# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which releases of torch can host a simulated device, and how they differ for the Python half.

What differs for the native half is in ``csrc/torch_version.h``.
"""

import datetime
from typing import Any

from verl_hw_sim.errors import UnsupportedTorchError
from verl_hw_sim.settings import SIM_ENVVAR

#: Every supported release, oldest first. test_sim_torch_matrix.py runs this package's tests on each.
TORCH_RELEASES = ("2.8", "2.9", "2.10", "2.11", "2.12", "2.13", "2.14", "2.15")
SUPPORTED_TORCH = f"{TORCH_RELEASES[0]} to {TORCH_RELEASES[-1]}"


def is_supported(version: str) -> bool:
    """Whether a ``torch.__version__`` belongs to a supported release."""
    return ".".join(version.split(".")[:2]) in TORCH_RELEASES


def pybind_defines(torch_c: Any) -> tuple[str, ...]:
    """Macros that give the native half the pybind11 ABI of torch's own bindings.

    Below 2.9, pybind11 shares types only between modules of one compiler ABI, and torch says which one is its own.
    Without the macros, another g++ makes a module that takes none of torch's classes.

    Args:
        torch_c: ``torch._C``.
    """
    values = {name: getattr(torch_c, f"_PYBIND11_{name}", None) for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")}
    return tuple(f'-DPYBIND11_{name}="{value}"' for name, value in values.items() if value is not None)


def group_timeout(options: Any) -> datetime.timedelta:
    """Timeout of a new group of a collective library that is built into torch.

    Below 2.9, torch gives xccl no options, so that its own default holds whatever timeout the group was given.

    Args:
        options: The process group's options, or None.
    """
    from torch.distributed import distributed_c10d

    timeout: datetime.timedelta = distributed_c10d.default_pg_timeout if options is None else options._timeout
    return timeout


def check_torch_version(version: str) -> None:
    """Refuse a torch that the native half is not written for; compiling would fail after a minute.

    Args:
        version: ``torch.__version__``.

    Raises:
        UnsupportedTorchError: It belongs to no supported release.
    """
    if not is_supported(version):
        raise UnsupportedTorchError(
            f"verl-hw-sim needs torch {SUPPORTED_TORCH}; found torch {version}. "
            f"Install a supported torch in an environment of its own, or unset {SIM_ENVVAR}."
        )
