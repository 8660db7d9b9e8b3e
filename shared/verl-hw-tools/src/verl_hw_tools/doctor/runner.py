# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Examine this machine: start what the chosen checks need, all at the same time, then judge."""

import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial

from verl_hw_core.errors import VerlHwError
from verl_hw_tools.conformance.results import Status
from verl_hw_tools.doctor import foreign
from verl_hw_tools.doctor.child import run_child
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.followers import Followers
from verl_hw_tools.doctor.model import Finding, Report, Result, crash
from verl_hw_tools.doctor.programs.plugins import PREFIX
from verl_hw_tools.doctor.ray_address import cluster_to_ask
from verl_hw_tools.doctor.redaction import Redactor
from verl_hw_tools.doctor.registry import FULL, RAY, VERL, Check, builtin_checks, foreign_groups
from verl_hw_tools.doctor.stages import ChildReport
from verl_hw_tools.errors import CheckDefinitionError

DEFAULT_DEADLINE = 120.0
# A cluster that is up answers at once; one that is gone must not hold the doctor.
_RAY_DEADLINE = 30.0
# The first start of a simulated device may compile it.
_SIMULATOR_DEADLINE = 900.0


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to examine.

    Attributes:
        vendor: Platform key or alias to judge, or None for the one that verl would use.
        only: Ids of checks, or their groups; empty for all.
        deadline: Seconds that a step of a child process may take.
    """

    vendor: str | None = None
    only: tuple[str, ...] = ()
    deadline: float = DEFAULT_DEADLINE


def examine(settings: Settings | None = None) -> Report:
    """Run the checks on this machine. Neither torch nor verl nor a vendor's package is imported in this process.

    Raises:
        UnknownVendorError: No installed wheel provides the vendor.
        CheckDefinitionError: No check has such a name.
        ProbeRootError: ``VERL_HW_PROBE_ROOT`` is not a directory.
    """
    settings = settings or Settings()
    started = time.monotonic()
    facts = Facts(asked=settings.vendor)
    checks = _selected(builtin_checks(), settings.only)
    groups = [name for name in foreign_groups() if _wants_group(name, settings.only)]
    _refuse_unknown(settings.only, groups)
    _ = facts.vendor  # a vendor that nobody knows is said before anything is started
    others = _look(facts, checks, groups, settings)
    results = [_judge(check, facts) for check in checks] + _of_others(others, settings.only)
    _refuse_unmatched(settings.only, results)
    return Report(
        vendor=facts.vendor.key if facts.vendor is not None else None,
        summary=Redactor().secrets(_summary(facts)),
        results=tuple(_without_secrets(results)),
        seconds=time.monotonic() - started,
    )


def list_checks(settings: Settings) -> list[Result]:
    """Return the checks that ``settings`` select, run none; other packages' modules are loaded in child processes.

    Raises:
        CheckDefinitionError: No check has such a name.
    """
    groups = [name for name in foreign_groups() if _wants_group(name, settings.only)]
    _refuse_unknown(settings.only, groups)
    ours = [
        _result(check, Finding(status=Status.SKIP, observed="listed only"))
        for check in _selected(builtin_checks(), settings.only)
    ]
    with Followers() as followers:
        others = [
            followers.start(partial(foreign.run_group, name, "-", settings.deadline, followers.stop, foreign.LIST))
            for name in groups
        ]
        found = [result for other in others for result in other.result()]
    selected = [*ours, *_of_others(found, settings.only)]
    _refuse_unmatched(settings.only, selected)
    return selected


def load_verl(facts: Facts, *, full: bool, deadline: float, stop: threading.Event) -> ChildReport:
    """Load verl's plugins in a child process; with ``full``, or where a plugin needs it, verl itself too."""
    if facts.simulated:
        deadline = max(deadline, _SIMULATOR_DEADLINE)
    vendor = facts.vendor.key if facts.vendor is not None and facts.present else "-"

    def run(depth: str) -> ChildReport:
        return run_child("verl_load", [depth, vendor], deadline=deadline, stop=stop)

    if full or facts.environ.get("VERL_USE_EXTERNAL_MODULES"):
        return run(FULL)
    report = run("plugins")
    # A plugin may want more of verl than its interface: only verl itself can show whether it is broken.
    # An exit on purpose, as for a misspelt VERL_PLATFORM, stays one.
    troubled = [
        stage
        for stage in report.stages.values()
        if stage.name.startswith(PREFIX) and not stage.went_well and not stage.error.startswith("SystemExit")
    ]
    return run(FULL) if troubled and report.died_in is None else report


def needs_full(facts: Facts) -> bool:
    """Whether verl itself is worth its seconds: a vendor was asked for, or is here."""
    return facts.asked is not None or facts.present


def _look(facts: Facts, checks: Sequence[Check], groups: Sequence[str], settings: Settings) -> list[Result]:
    """Run all child processes and put their reports into the facts; return the other packages' results."""
    needed = {need for check in checks for need in check.needs}
    # Whoever asks for a check by name gets it, whatever it costs.
    full = FULL in needed and (needs_full(facts) or bool(settings.only))
    vendor = settings.vendor or "-"
    with Followers() as followers:
        verl = ray = None
        if needed & {VERL, FULL}:
            verl = followers.start(lambda: load_verl(facts, full=full, deadline=settings.deadline, stop=followers.stop))
        if RAY in needed and cluster_to_ask(facts.environ):
            ray = followers.start(lambda: run_child("ray_cluster", [], deadline=_RAY_DEADLINE, stop=followers.stop))
        others = [
            followers.start(partial(foreign.run_group, name, vendor, settings.deadline, followers.stop))
            for name in groups
        ]
        facts.verl = verl.result() if verl is not None else ChildReport()
        facts.ray = ray.result() if ray is not None else ChildReport()
        return [result for other in others for result in other.result()]


def _judge(check: Check, facts: Facts) -> Result:
    started = time.monotonic()
    try:
        finding = check.run(facts)
    except VerlHwError:
        raise
    except Exception as error:  # noqa: BLE001 - a check that breaks is said, and the others go on
        finding = _broken(error)
    return _result(check, finding, time.monotonic() - started)


def _result(check: Check, finding: Finding, seconds: float = 0.0) -> Result:
    named = {"id": check.id, "title": check.title, "why": check.why, "doc": check.doc}
    return Result(**named, finding=finding, seconds=seconds)


def _broken(error: Exception) -> Finding:
    found = crash(
        f"the check itself broke: {type(error).__name__}: {error}",
        expected="an answer",
        mend="report it, with the output of: verl-hw doctor --json",
        details="".join(traceback.format_exception(error)),
    )
    return replace(found, ours=True)


def _without_secrets(results: Sequence[Result]) -> Iterator[Result]:
    """A traceback or a variable may hold a token, and the report is what people paste."""
    hide = Redactor().secrets
    for result in results:
        found = result.finding
        clean = replace(
            found,
            observed=hide(found.observed),
            expected=hide(found.expected),
            mend=hide(found.mend),
            details=hide(found.details),
        )
        yield replace(result, finding=clean)


def _refuse_unknown(only: Sequence[str], groups: Sequence[str]) -> None:
    """A misspelt name must not look like a check that passed; those of other packages are known once they are loaded.

    Raises:
        CheckDefinitionError: A name is that of no check and no group.
    """
    known = {name for check in builtin_checks() for name in (check.id, check.group)}
    unknown = [name for name in only if name not in known and name.partition(".")[0] not in groups]
    if unknown:
        near = get_close_matches(unknown[0].lower(), sorted({*known, *groups}), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise CheckDefinitionError(f"no check is called {unknown[0]!r}: {hint}verl-hw doctor --list shows all")


def _refuse_unmatched(only: Sequence[str], results: Sequence[Result]) -> None:
    """The same for the names of other packages' checks.

    Raises:
        CheckDefinitionError: A name has no result.
    """
    found = {name for result in results for name in (result.id, _group(result))}
    for name in only:
        if name not in found and f"{name.partition('.')[0]}.load" not in found:
            raise CheckDefinitionError(
                f"no check for this vendor is called {name!r}: verl-hw doctor --list shows all, of every vendor"
            )


def _selected(checks: Sequence[Check], only: Sequence[str]) -> list[Check]:
    return [check for check in checks if not only or check.id in only or check.group in only]


def _of_others(results: Sequence[Result], only: Sequence[str]) -> list[Result]:
    """Of other packages' results those that are wanted, and that a group could not be loaded."""
    return [one for one in results if not only or {one.id, _group(one)} & set(only) or one.id == f"{_group(one)}.load"]


def _group(result: Result) -> str:
    return result.id.partition(".")[0]


def _wants_group(name: str, only: Sequence[str]) -> bool:
    return not only or any(one.partition(".")[0] == name for one in only)


def _summary(facts: Facts) -> str:
    choice = facts.choice
    name = next((spec.display_name for spec in facts.specs if spec.key == choice.vendor), "none of these vendors")
    absent = ""
    if facts.vendor is not None and not facts.present:
        absent = f"no {facts.vendor.display_name} was found here, so what needs one was skipped. "
    return f"{absent}verl would use {name}: {choice.because}"
