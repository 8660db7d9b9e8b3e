# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The vendor's collective library as a torch.distributed backend, over gloo."""

import datetime
from types import ModuleType
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d

from verl_hw_sim.errors import UnsupportedTorchError
from verl_hw_sim.profiles import Profile
from verl_hw_sim.torch_support import group_timeout

# torch has classes of its own for these names and asks for them before any plugin.
_BUILT_INTO_TORCH = {"nccl": "ProcessGroupNCCL", "xccl": "ProcessGroupXCCL"}


def register_ccl(native: ModuleType, profile: Profile) -> None:
    """Register ``profile.ccl_backend`` for ``profile.device_name``.

    Args:
        native: The compiled half.
        profile: The vendor.

    Raises:
        UnsupportedTorchError: This torch was built without gloo.
    """
    if not (dist.is_available() and dist.is_gloo_available()):
        raise UnsupportedTorchError(
            "the simulator's collectives run over gloo, which this torch was built without. Install another torch."
        )
    name = profile.ccl_backend
    if name in _BUILT_INTO_TORCH:
        _stand_in_for_builtin(native, name)
        return

    def create(options: Any, backend_options: Any = None) -> Any:
        return _make_backend(native, name, options.store, options.group_rank, options.group_size, options.timeout)

    dist.Backend.register_backend(name, create, extended_api=True, devices=[profile.device_name])
    _let_composite_groups_find(name)


def _let_composite_groups_find(name: str) -> None:
    """Make ``cpu:gloo,mlu:cncl`` groups have a default backend; without one they warn when they are destroyed.

    torch takes the first registered name if the group uses it, but compares the upper-case spelling it stored with
    the lower-case one of the group: put the latter first.
    """
    plugins = getattr(dist.Backend, "_plugins", {})
    if name.upper() in plugins:
        others = dict(plugins)
        plugins.clear()
        plugins.update({name: others[name.upper()], **others})


def _make_backend(native: ModuleType, name: str, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> Any:
    gloo = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
    return native.make_backend(gloo, name, timeout.total_seconds())


def _stand_in_for_builtin(native: ModuleType, name: str) -> None:
    class Options:
        """The options that torch sets on a built-in process group."""

        def __init__(self, is_high_priority_stream: bool = False) -> None:
            self.is_high_priority_stream = is_high_priority_stream
            self._timeout = distributed_c10d.default_pg_timeout
            self.global_ranks_in_group: list[int] = []
            self.group_name = ""

    class InstanceByName(type):
        def __instancecheck__(cls, instance: object) -> bool:
            backend_name = getattr(instance, "name", None)
            return callable(backend_name) and backend_name() == name

    class ProcessGroup(metaclass=InstanceByName):
        def __new__(cls, store: Any, rank: int, size: int, options: Any = None) -> Any:
            return _make_backend(native, name, store, rank, size, group_timeout(options))

    ProcessGroup.Options = Options  # type: ignore[attr-defined]
    class_name = _BUILT_INTO_TORCH[name]
    ProcessGroup.__name__ = ProcessGroup.__qualname__ = class_name
    for module in (distributed_c10d, dist):
        setattr(module, class_name, ProcessGroup)
    setattr(distributed_c10d, f"_{name.upper()}_AVAILABLE", True)
