# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Real limits and faults of vendor stacks, switched on by ``VERL_HW_SIM_LIMITS`` or from a test.

The variable is a comma list of

=====================  ====================================================================================
``avg_rejected``       the collective library raises for ``ReduceOp.AVG``
``avg_wrong``          AVG divides twice for tensors below 64 elements
``sum_wrong``          SUM counts rank 0's contribution twice
``no_fp64``            creating a float64 tensor on the device raises
``late_host_copies``   a non-blocking copy to the host is done when somebody waits; a copy back before has other numbers
``memory=<MiB>``       memory of each device; more raises ``torch.OutOfMemoryError``
``deny=<operator>``    the operator (``aten::mul``, ``mul``, or one overload: ``aten::mul.Tensor``) is denied
``missing=<name>``     the device module lacks the name (``ipc_collect``, ``memory._set_allocator_settings``)
``raising=<name>``     that function of the device module raises
``hang=<collective>``  the collective (``all_reduce``, ...) blocks until the group's timeout
=====================  ====================================================================================

The last four may be given more than once.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from verl_hw_sim.errors import SettingsError
from verl_hw_sim.settings import LIMITS_ENVVAR, unknown_name_message
from verl_hw_sim.simulation import Simulation, active_simulation

SWITCHES = ("avg_rejected", "avg_wrong", "sum_wrong", "no_fp64", "late_host_copies")
REPEATABLE = ("deny", "missing", "raising", "hang")
NAMES = (*SWITCHES, "memory", *REPEATABLE)
COLLECTIVES = (
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "send",
)
_MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits in force. The module's docstring explains each; ``memory`` is in MiB, None for no cap."""

    avg_rejected: bool = False
    avg_wrong: bool = False
    sum_wrong: bool = False
    no_fp64: bool = False
    late_host_copies: bool = False
    memory: int | None = None
    deny: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    raising: tuple[str, ...] = ()
    hang: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The value of ``VERL_HW_SIM_LIMITS`` that means these limits."""
        parts = [name for name in SWITCHES if getattr(self, name)]
        if self.memory is not None:
            parts.append(f"memory={self.memory}")
        parts.extend(f"{name}={value}" for name in REPEATABLE for value in getattr(self, name))
        return ",".join(parts)


def parse(text: str) -> Limits:
    """Read the value of ``VERL_HW_SIM_LIMITS``.

    Args:
        text: The comma list; empty for no limits.

    Raises:
        SettingsError: An entry is not one of the documented ones.
    """
    values: dict[str, Any] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, separator, argument = (part.strip() for part in entry.partition("="))
        if name not in NAMES:
            valid = [*SWITCHES, "memory=<MiB>", "deny=<operator>", "missing=<name>", "raising=<name>"]
            valid.append("hang=<collective>")
            raise SettingsError(unknown_name_message(f"an entry of {LIMITS_ENVVAR}", entry, valid))
        if bool(argument) == (name in SWITCHES) or (separator and not argument):
            form = name if name in SWITCHES else f"{name}=<value>"
            raise SettingsError(f"{LIMITS_ENVVAR}: {name} is written {form}; found {entry!r}. Correct the entry.")
        if name in SWITCHES:
            values[name] = True
        elif name == "memory":
            if not (argument.isascii() and argument.isdigit()):
                raise SettingsError(f"{LIMITS_ENVVAR}: memory is a whole number of MiB; found {argument!r}.")
            values[name] = int(argument)
        else:
            values[name] = (*values.get(name, ()), argument)
    return Limits(**values)


_current = Limits()
_replaced: dict[str, tuple[ModuleType, str, Any]] = {}


def current() -> Limits:
    """The limits in force in this process."""
    return _current


def apply(limits: Limits) -> None:
    """Put ``limits`` in force, in place of whatever was.

    Args:
        limits: The new limits; ``Limits()`` lifts all.

    Raises:
        SettingsError: An operator, a name or a collective does not exist.
        NotSimulatingError: This process simulates no device.
    """
    apply_to(active_simulation(), limits)


@contextlib.contextmanager
def override(**changes: Any) -> Iterator[Limits]:
    """Change some limits for the duration of a ``with`` block.

    Args:
        **changes: Fields of :class:`Limits`, as ``override(avg_rejected=True, deny=("aten::topk",))``.
    """
    before = current()
    apply(replace(before, **changes))
    try:
        yield current()
    finally:
        apply(before)


def apply_to(simulation: Simulation, limits: Limits) -> None:
    """As :func:`apply`, for the installer."""
    global _current
    operators = tuple(name if "::" in name else f"aten::{name}" for name in limits.deny)
    unknown = simulation.native.unknown_operators(list(operators))
    if unknown:
        raise SettingsError(
            f"{LIMITS_ENVVAR}: deny names a torch operator, as aten::mul, or one overload of it, as aten::mul.Tensor; "
            f"there is no {unknown[0]!r} in this torch. Correct the name."
        )
    for collective in limits.hang:
        if collective not in COLLECTIVES:
            raise SettingsError(unknown_name_message(f"{LIMITS_ENVVAR}: hang", collective, COLLECTIVES))
    try:
        _replace_names(simulation, limits)
    except SettingsError:
        _replace_names(simulation, _current)
        raise
    simulation.native.set_limits(
        limits.avg_rejected,
        limits.avg_wrong,
        limits.sum_wrong,
        limits.no_fp64,
        limits.late_host_copies,
        -1 if limits.memory is None else limits.memory * _MIB,
        list(operators),
        list(limits.hang),
    )
    _current = limits


def _raising(name: str) -> Any:
    def raise_error(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"torch.{name}: the simulated driver reports an error ({LIMITS_ENVVAR}: raising)")

    return raise_error


def _replace_names(simulation: Simulation, limits: Limits) -> None:
    _restore_names()
    for name in limits.missing:
        _replace_name(simulation, name, None)
    for name in limits.raising:
        _replace_name(simulation, name, _raising(f"{simulation.profile.device_name}.{name}"))


def _replace_name(simulation: Simulation, name: str, replacement: Any) -> None:
    """Remove a (dotted) name from the device module, or put something else there."""
    module = simulation.device_module
    *parents, last = name.split(".")
    for parent in parents:
        module = getattr(module, parent, None)  # type: ignore[assignment]
    if module is None or last not in vars(module):
        if name in simulation.profile.absent:
            return
        valid = [key for key in vars(module or simulation.device_module) if not key.startswith("__")]
        raise SettingsError(
            unknown_name_message(f"{LIMITS_ENVVAR}: a name in torch.{simulation.profile.device_name}", name, valid)
        )
    _replaced.setdefault(name, (module, last, vars(module)[last]))
    if replacement is None:
        del vars(module)[last]
    else:
        vars(module)[last] = replacement


def _restore_names() -> None:
    for module, name, original in _replaced.values():
        vars(module)[name] = original
    _replaced.clear()
