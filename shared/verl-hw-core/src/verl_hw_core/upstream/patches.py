# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Replacing names of other packages: only what a ledger row declares, guarded, and so that it can be put back.

Rows are applied by :func:`apply` or by functions of :func:`applies`; hooks go through :func:`when_imported`. So nothing
that fails is raised where it happens, which may be in the middle of verl's import: it is one WARNING, and where going
on would give wrong numbers :func:`require_applied` refuses to build an engine.
"""

import contextlib
import functools
import importlib
import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar

from verl_hw_core import load_report
from verl_hw_core.errors import UpstreamPatchError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.upstream import installed_state
from verl_hw_core.upstream.ledger import LEDGER, LedgerRow

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class _Replaced:
    owner: Any
    name: str
    own: Any  # as it is in the owner's namespace; _ABSENT where there was nothing
    replacement: Any


_ABSENT = object()
_rows: dict[str, LedgerRow] = {row.id: row for row in LEDGER}
_replaced: dict[tuple[str, str], _Replaced] = {}  # by row and target
_kernels: dict[tuple[str, str, str], Any] = {}
_ours: dict[str, list[Callable[..., Any]]] = {}  # what replaces() has declared for a row
_failures: dict[tuple[str, str], str] = {}  # by row and step, which only a success of the same step clears
_put_back: set[str] = set()  # rows that a late reference does not apply again
_lock = threading.RLock()  # around what is looked at and then changed; never around an import
_NAMES = "names"


def replaces(row: str, *targets: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Declare a module's function as what :func:`apply` puts in the place of another package's function.

    It is called with what it replaces as first argument, and the caller's arguments. Having a name of its own, it is
    sent to Ray's workers as a reference; where its row is not in force it does what the replaced function does.
    ``targets`` are names of the function, as the row declares them.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def replacement(*args: Any, **kwargs: Any) -> R:
            if (row, targets[0]) not in _replaced:
                _apply_where_chosen(row)
            one = _replaced.get((row, targets[0]))
            if one is None:
                return current(row, targets[0])(*args, **kwargs)  # type: ignore[no-any-return]
            return function(_function(one.own), *args, **kwargs)

        _, *parameters = inspect.signature(function).parameters.values()
        replacement.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        vars(replacement)["targets"] = targets
        _ours.setdefault(row, []).append(replacement)
        return replacement

    return decorate


def apply(row: str, *needs: str) -> bool:
    """Put the functions that :func:`replaces` declares for a row in their places; what is there already stays.

    It raises nothing, and says whether the row is applied. ``needs`` are rows whose names it reads.
    """
    return _met(row, needs) and _attempt(row, "apply", lambda: put(row))


def put(row: str) -> None:
    """Do as :func:`apply`, unguarded: for functions of :func:`applies`.

    Raises:
        LookupError: A name is not there, or the module whose functions replace the row's names was not imported.
    """
    known = set(installed_state.applicable(declared(row)))
    if row not in _ours:
        raise LookupError(f"no function of an imported module replaces what upstream ledger row {row!r} declares")
    for replacement in _ours[row]:
        for owner, name in (installed_state.place(one) for one in vars(replacement)["targets"] if one in known):
            own_value = vars(owner).get(name)
            kind = type(own_value) if isinstance(own_value, staticmethod | classmethod) else None
            replace(row, owner, name, kind(replacement) if kind else replacement)


def replace(row: str, owner: Any, name: str, replacement: Any) -> None:
    """Set ``owner.name`` to ``replacement``; a name that the row has replaced already is left alone.

    The owner is a module or class; the replacement may be a ``staticmethod`` or ``classmethod`` object.

    Raises:
        LookupError: The ledger has no such row, it does not declare the name, or the name is not there.
    """
    from verl_hw_core.upstream import references

    target = _target(row, owner, name)
    with _lock:
        if (row, target) in _replaced:
            return
        own_value = vars(owner).get(name, _ABSENT)
        if own_value is _ABSENT and not _rows[row].may_be_absent:
            raise LookupError(f"there is no {target}")
        inside, undone = _function(replacement), getattr(own_value, "__wrapped__", None)
        references.send_away(row, target, _function(own_value))
        new = replacement
        if isinstance(inside, FunctionType) and "targets" not in vars(inside) and inside is not undone:
            new = references.stand_in(row, target)
            new = type(replacement)(new) if inside is not replacement else new
        _replaced[row, target] = _Replaced(owner, name, own_value, inside)
        setattr(owner, name, new)


def replace_module(row: str, name: str, module: ModuleType) -> None:
    """Have the import of a module that was not imported yet find another one.

    Raises:
        LookupError: The ledger has no such row, or it does not declare the module.
    """
    target = ":".join(name.rsplit(".", 1))
    if target not in declared(row):
        raise LookupError(_undeclared(row, target))
    _replaced[row, target] = _Replaced(sys.modules, name, _ABSENT, module)
    sys.modules[name] = module


def add_kernel(row: str, operator: str, device: str, kernel: Callable[..., Any]) -> None:
    """Register a kernel of one of torch's operators for a device; what the row has registered already stays.

    The operator is named as ``"aten::topk"``, the device by its torch device type.

    Raises:
        LookupError: The ledger has no such row, or it does not declare the operator.
    """
    import torch

    if f"torch:ops.{operator.replace('::', '.')}" not in declared(row):
        raise LookupError(_undeclared(row, operator))
    key = (row, operator, device)
    if key not in _kernels:
        namespace, _, _ = operator.partition("::")
        # torch takes the kernel back when the library is gone.
        _kernels[key] = torch.library.Library(namespace, "FRAGMENT")
        torch.library.impl(operator, device, kernel, lib=_kernels[key])


def declared(row: str) -> tuple[str, ...]:
    """Return the targets of a row, with those that packages declare.

    Raises:
        LookupError: The ledger has no such row.
    """
    if row not in _rows:
        raise LookupError(f"upstream ledger has no row {row!r}: add it before anything is changed")
    more = _rows[row].more_targets
    return (*_rows[row].targets, *(_call(more) if more else ()))


def original(row: str, owner: Any, name: str) -> Any:
    """Return what ``owner.name`` is without the row's replacement."""
    for (known, _), one in list(_replaced.items()):
        if known == row and one.owner is owner and one.name == name:
            return None if one.own is _ABSENT else one.own
    return vars(owner)[name]


def own(row: str, target: str) -> Any:
    """Return the function that is, or would be, replaced under a declared name."""
    return _function(original(row, *installed_state.place(target)))


def current(row: str, target: str) -> Any:
    """Return the function that is in force under a declared name in this process."""
    one = _replaced.get((row, target))
    if one is not None:  # every call of a patched model comes by here, also while torch.compile traces it
        return one.replacement
    owner, name = installed_state.place(target)
    return _function(vars(owner)[name])


def restore(row: str) -> None:
    """Put back everything that the row has replaced."""
    from verl_hw_core.upstream import references

    with _lock:
        _put_back.add(row)
        for key in [key for key in _replaced if key[0] == row]:
            one = _replaced.pop(key)
            if one.owner is sys.modules:
                if sys.modules.get(one.name) is one.replacement:
                    del sys.modules[one.name]
            elif one.own is _ABSENT:
                delattr(one.owner, one.name)
            else:
                setattr(one.owner, one.name, one.own)
            references.take_home(_function(one.own))
        for kernel in [key for key in _kernels if key[0] == row]:
            del _kernels[kernel]


def in_force() -> tuple[str, ...]:
    """Return the ids of the rows that have replaced something in this process, in the ledger's order."""
    rows = {key[0] for key in [*list(_replaced), *list(_kernels)]}
    return tuple(row.id for row in LEDGER if row.id in rows)


def replaced() -> dict[str, set[str]]:
    """Return the names that are replaced in this process, by row, as the rows declare them."""
    found: dict[str, set[str]] = {}
    for row, target in list(_replaced):
        found.setdefault(row, set()).add(target)
    for row, operator, _ in list(_kernels):
        found.setdefault(row, set()).add(f"torch:ops.{operator.replace('::', '.')}")
    return found


def check(*rows: str) -> bool:
    """Whether the installed packages have every name that the rows declare; what is missing is one WARNING a row."""
    found = [_attempt(row, _NAMES, None) for row in rows]
    return all(found)


def _met(row: str, needs: tuple[str, ...]) -> bool:
    """Whether a row and those that it needs have their names, and none of these failed; says all that is missing."""
    return check(*needs, row) and not any(failed in needs for failed, _ in list(_failures))


def applies(row: str, *needs: str) -> Callable[[Callable[P, object]], Callable[P, bool]]:
    """Decorator of a function that applies a row: it raises nothing, and says whether the row is applied.

    ``needs`` are as for :func:`apply`.
    """

    def decorate(function: Callable[P, object]) -> Callable[P, bool]:
        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> bool:
            step = " ".join((function.__qualname__, *(one for one in args if isinstance(one, str))))
            return _met(row, needs) and _attempt(row, step, functools.partial(function, *args, **kwargs))

        return guarded

    return decorate


def when_imported(module: str, apply: Callable[[ModuleType], object], when: Callable[[], bool] = lambda: True) -> None:
    """Call ``apply(module)`` once the module is imported; what it raises does not reach who imports the module.

    It is a function of :func:`applies` where it changes something. ``when`` is asked before, outside of the guard.
    """
    import wrapt

    def hook(imported: ModuleType) -> None:
        if not when():
            return
        try:
            apply(imported)
        except Exception as error:  # noqa: BLE001 - as in _attempt
            what = load_report.describe(error)
            load_report.report("verl-hw-core", f"after the import of {module}", what, "Upgrade verl-hw-core", error)

    wrapt.register_post_import_hook(hook, module)


def require_applied() -> None:
    """Check that every row without which numbers would be wrong was applied; called when an engine is built.

    Raises:
        UpstreamPatchError: One was not.
    """
    ray = sys.modules.get("ray")
    in_ray = ray is not None and ray.is_initialized()
    refusing = ("refuse", "refuse in Ray") if in_ray else ("refuse",)
    texts = [text for (row, _), text in list(_failures.items()) if _rows[row].if_missing in refusing]
    if texts:
        raise UpstreamPatchError("; ".join(dict.fromkeys(texts)))


def _attempt(row: str, step: str, function: Callable[[], object] | None) -> bool:
    """Take a step of a row, None for a look at its names alone; say whether it went well."""
    try:
        absent = installed_state.missing(_rows[row])
        if not absent:
            _failures.pop((row, _NAMES), None)
            if function is not None:
                function()
                _failures.pop((row, step), None)
                _put_back.discard(row)
            return True
        step, error = _NAMES, None
        found = " and ".join(f"{_version(name)} has no {name}" for name in absent)
    except Exception as caught:  # noqa: BLE001 - whatever fails, verl's import and the other rows go on
        error, found = caught, load_report.describe(caught)
    restore(row)
    stage = f"upstream patch {row}"
    what = f"{found}: {_rows[row].lost}"
    wanted = ", ".join(installed_state.requirements(_rows[row]))
    remedy = f"Upgrade verl-hw-core, or install what it was made for: {wanted}"
    _failures[row, step] = f"{stage}: {what}. {remedy}"
    load_report.report("verl-hw-core", stage, what, remedy, error)
    return False


def _version(name: str) -> str:
    package = installed_state.distribution(name)
    return f"{package} {installed_state.installed_version(package) or 'without version'}"


def _target(row: str, owner: Any, name: str) -> str:
    """Return the declared name that is ``owner.name``."""
    for target in (one.partition(";")[0] for one in declared(row)):
        module, _, path = target.partition(":")
        if path.rpartition(".")[2] == name and module in sys.modules:
            with contextlib.suppress(AttributeError):  # a class that this version does not have
                if installed_state.place(target)[0] is owner:
                    return target
    raise LookupError(_undeclared(row, f"{getattr(owner, '__name__', owner)}.{name}"))


def _undeclared(row: str, what: str) -> str:
    return f"upstream ledger row {row!r} does not declare {what}: add it to its targets before it is changed"


def _function(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


def _call(reference: str) -> Any:
    module, _, function = reference.partition(":")
    return getattr(importlib.import_module(module), function)()


def _apply_where_chosen(row: str) -> None:
    """Apply a row that was in force in the sending process, if this process runs on one of our platforms too."""
    manager = sys.modules.get("verl.plugin.platform.platform_manager")
    platform = getattr(manager, "_current_platform", None)
    refrains = row in _put_back or any(failed == row for failed, _ in list(_failures))
    if isinstance(getattr(platform, "spec", None), HardwareSpec) and _rows[row].applied_by and not refrains:
        _call(_rows[row].applied_by)
