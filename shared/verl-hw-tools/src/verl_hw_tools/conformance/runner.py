# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run the suite: survey, plan, launches, report."""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from verl_hw_tools.conformance import registry
from verl_hw_tools.conformance.launch import LaunchPlan, run_launches
from verl_hw_tools.conformance.machine import HOW_TO_SIMULATE, Target, choose_target
from verl_hw_tools.conformance.progress import Progress
from verl_hw_tools.conformance.results import CheckResult, Machine, Report, Status
from verl_hw_tools.conformance.survey import ListedCheck, Survey
from verl_hw_tools.errors import CheckDefinitionError, CheckSuiteError, MissingComponentError, NoHardwareError

DEFAULT_DEADLINE = 120.0
_MOST_PROCESSES_BY_DEFAULT = 4
# The first start of a simulated device may compile it.
_SURVEY_SECONDS = 900.0


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to run.

    Attributes:
        vendor: Platform key or alias, or None for the one that detection chooses.
        processes: Processes of the checks that need several, or None for one a device, at most four.
        only: Groups, or ids of checks, to run; empty for all. ``"collectives.all_reduce"`` is every check below it.
        deadline: Seconds that a check may take.
    """

    vendor: str | None = None
    processes: int | None = None
    only: tuple[str, ...] = ()
    deadline: float = DEFAULT_DEADLINE


def run(settings: Settings | None = None, progress: Progress | None = None, survey: Survey | None = None) -> Report:
    """Run the conformance suite on this machine's devices.

    With ``VERL_HW_SIM`` set, on simulated ones. torch is imported in child processes only.

    Args:
        settings: What to run; everything when left out.
        progress: Told what goes on.
        survey: What :func:`survey_devices` found, to not look again.

    Raises:
        NoHardwareError: There is no device, or not as many as processes were asked for.
        UnknownVendorError: No installed wheel provides the vendor.
        CheckDefinitionError: No check has such a name.
        CheckSuiteError: The survey's process ended without an answer.
    """
    settings = settings or Settings()
    progress = progress or Progress()
    started, begin = datetime.now(timezone.utc), time.monotonic()
    target = choose_target(settings.vendor)
    with tempfile.TemporaryDirectory(prefix="verl-hw-check-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if survey is None:
            progress.survey()
            survey = survey_devices(settings, target, folder)
        checks = select(survey.checks, settings.only)
        processes = _processes(settings, len(survey.device_names), target)
        progress.begin(len(checks))
        results = _run_all(checks, survey, processes, settings, target, folder, progress)
    return Report(
        machine=Machine(
            vendor=target.spec.key,
            display_name=target.spec.display_name,
            device=target.spec.device_name,
            simulated=target.simulated,
            limits=target.limits,
            device_names=survey.device_names,
            versions=survey.versions,
        ),
        results=tuple(results),
        processes=processes,
        started=started.isoformat(timespec="seconds"),
        seconds=time.monotonic() - begin,
    )


def survey_devices(
    settings: Settings | None = None, target: Target | None = None, folder: Path | None = None
) -> Survey:
    """Look which devices and checks there are, in a process of its own.

    Raises:
        CheckDefinitionError: A name in ``settings.only`` is no group and no check's.
        CheckSuiteError: That process ended without an answer.
        MissingComponentError: A simulated device does not start.
    """
    settings = settings or Settings()
    target = target or choose_target(settings.vendor)
    simulated = target.simulated is not None
    return _survey(settings.only, target.spec.key, target.environment, folder, simulated=simulated)


def list_checks(settings: Settings) -> tuple[ListedCheck, ...]:
    """Return the checks that ``settings`` selects. Needs torch and no device.

    Raises:
        CheckDefinitionError: A name in ``settings.only`` is no group and no check's.
        CheckSuiteError: The process that looks at the checks ended without an answer.
    """
    from verl_hw_tools.demo.devices import base_environment

    return select(_survey(settings.only, "", base_environment(), None, simulated=False).checks, settings.only)


def _survey(
    only: Sequence[str], vendor: str, environment: Mapping[str, str], folder: Path | None, *, simulated: bool
) -> Survey:
    """Run the survey's process; without a vendor it looks at no device."""
    from verl_hw_core.errors import TrainingFailedError
    from verl_hw_core.processes import run_launcher
    from verl_hw_tools.demo.devices import prepare_simulator
    from verl_hw_tools.demo.failure import relevant_lines

    names = _groups_of(only)
    with tempfile.TemporaryDirectory(prefix="verl-hw-check-", dir=folder) as temporary:
        result, log = Path(temporary) / "survey.json", Path(temporary) / "log.txt"
        try:
            run_launcher(
                [sys.executable, "-m", "verl_hw_tools.conformance.survey_process", vendor, str(result), *names],
                environment=environment,
                folder=Path(temporary),
                log=log,
                watch=lambda: None,
                stall_seconds=_SURVEY_SECONDS,
            )
        except TrainingFailedError as error:
            raise CheckSuiteError(
                f"importing torch with {vendor or 'no device'} hung {_SURVEY_SECONDS:.0f} s"
            ) from error
        if not result.exists():
            said = relevant_lines(log.read_text(encoding="utf-8", errors="replace")) or ["it said nothing"]
            if simulated:
                # Where the simulator is the cause, this raises with its own words, which torch's error hides.
                try:
                    prepare_simulator(environment, Path(temporary), log)
                except MissingComponentError as error:
                    # Without the name of the log, which goes with its folder.
                    raise MissingComponentError(str(error).partition("\nfull log: ")[0]) from error
            reason = next((line for line in said if not line.startswith((" ", "Traceback"))), said[-1])
            first = f"the torch stack of {vendor or 'this installation'} does not start: {reason}"
            raise CheckSuiteError("\n".join([first, *([] if simulated else [HOW_TO_SIMULATE]), *said]))
        return Survey.read(result)


def select(checks: Sequence[ListedCheck], only: Sequence[str]) -> tuple[ListedCheck, ...]:
    """Return the checks that ``only`` names, in their order; all when it is empty.

    Raises:
        CheckDefinitionError: A name fits no check.
    """
    groups = registry.groups()
    for name in only:
        if name not in groups and not any(_names(name, check.id) for check in checks):
            raise CheckDefinitionError(f"no check is called {name!r}: --list shows all of them")
    return tuple(check for check in checks if not only or any(_names(name, check.id) for name in only))


def _names(name: str, check_id: str) -> bool:
    return check_id == name or check_id.startswith(f"{name}.")


def _groups_of(only: Sequence[str]) -> list[str]:
    known = registry.groups()
    wanted = {name.partition(".")[0] for name in only}
    unknown = sorted(wanted - set(known))
    if unknown:
        raise CheckDefinitionError(f"no group of checks is called {unknown[0]!r}; there are: {', '.join(known)}")
    return [name for name in known if not wanted or name in wanted]


def _processes(settings: Settings, devices: int, target: Target) -> int:
    if devices == 0:
        raise NoHardwareError(
            f"torch.{target.spec.device_name} sees no device of {target.spec.display_name}: check "
            f"{target.spec.visible_devices_envvar} and the driver"
        )
    if settings.processes is not None and settings.processes > devices:
        raise NoHardwareError(
            f"{settings.processes} processes need a device each, and only {devices} are visible: "
            f"use --nproc {devices} or fewer"
        )
    return settings.processes or min(devices, _MOST_PROCESSES_BY_DEFAULT)


def _run_all(
    checks: Sequence[ListedCheck],
    survey: Survey,
    processes: int,
    settings: Settings,
    target: Target,
    folder: Path,
    progress: Progress,
) -> list[CheckResult]:
    found: dict[str, CheckResult] = {}

    def keep(result: CheckResult) -> None:
        found[result.id] = result
        progress.result(result)

    for group, error in survey.broken.items():
        title = f"the checks of group {group} can be loaded"
        keep(CheckResult(id=f"{group}.load", title=title, status=Status.FAIL, observed=error, expected="a module"))
    launches: dict[tuple[str, int], list[ListedCheck]] = {}
    for check in checks:
        needed = check.processes
        if needed > len(survey.device_names) or (needed > processes and settings.processes is not None):
            keep(_skipped(check, len(survey.device_names), processes))
            continue
        count = 1 if needed == 1 else max(processes, needed)
        launches.setdefault((check.group, count), []).append(check)
    for (group, count), members in launches.items():
        plan = LaunchPlan(
            vendor=target.spec.key, group=group, processes=count, checks=tuple(members), deadline=settings.deadline
        )
        run_launches(plan, target.environment, folder, progress.check, keep)
    # In the order of the list, whatever launch they were in.
    listed = [check.id for check in checks]
    return [*(result for name, result in found.items() if name not in listed), *(found[name] for name in listed)]


def _skipped(check: ListedCheck, devices: int, processes: int) -> CheckResult:
    have = f"{devices} devices are visible" if check.processes > devices else f"--nproc is {processes}"
    return CheckResult(
        id=check.id,
        title=check.title,
        blocks=check.blocks,
        status=Status.SKIP,
        observed=f"needs {check.processes} processes with a device each; {have}",
        processes=check.processes,
    )
