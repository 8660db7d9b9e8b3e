# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run the checks of one group in their processes; start again behind a check that crashed or hung."""

import json
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verl_hw_core.processes import run_launcher
from verl_hw_tools.conformance import events
from verl_hw_tools.conformance.job import Job
from verl_hw_tools.conformance.results import CheckResult, Finding, Status, worst
from verl_hw_tools.conformance.survey import ListedCheck
from verl_hw_tools.conformance.watcher import LaunchOverdueError, Watcher

_START_SECONDS = 300.0
# The watcher ends what takes too long, each part by its own limit.
_NO_LIMIT = 3600.0 * 24
_STACK_LINES = 6


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """Checks that run in the same processes.

    Attributes:
        vendor: Platform key.
        group: Their group.
        processes: Number of processes.
        checks: The checks, in order.
        deadline: Seconds that a check may take.
    """

    vendor: str
    group: str
    processes: int
    checks: tuple[ListedCheck, ...]
    deadline: float


def run_launches(
    plan: LaunchPlan,
    environment: Mapping[str, str],
    folder: Path,
    on_start: Callable[[str], None],
    on_result: Callable[[CheckResult], None],
) -> list[CheckResult]:
    """Run all checks of a plan, in as many launches as it takes.

    Args:
        plan: What to run.
        environment: Environment of the processes.
        folder: Folder below which each launch gets its own.
        on_start: Called with a check's id when it begins.
        on_result: Called with each result.

    Returns:
        One result for each check.
    """
    results: list[CheckResult] = []
    remaining = list(plan.checks)
    address_taken_before = False
    while remaining:
        attempt = _Attempt(plan, remaining, environment, folder, on_start)
        attempt.run()
        if attempt.address_was_taken and not address_taken_before:
            address_taken_before = True
            continue
        new = attempt.results()
        for result in new:
            on_result(result)
        results += new
        remaining = remaining[len(new) :]
        untidy = attempt.untidy_end() if not remaining else None
        if untidy is not None:
            on_result(untidy)
            results.append(untidy)
    return results


class _Attempt:
    """One launch: the checks from the first that has no result yet."""

    def __init__(
        self,
        plan: LaunchPlan,
        checks: Sequence[ListedCheck],
        environment: Mapping[str, str],
        folder: Path,
        on_start: Callable[[str], None],
    ) -> None:
        self._plan, self._checks, self._environment = plan, checks, environment
        self._folder = Path(tempfile.mkdtemp(prefix=f"{plan.group}-", dir=folder))
        self._overdue: str | None = None
        self._watcher = Watcher(
            self._folder,
            plan.processes,
            deadline=plan.deadline,
            start_seconds=_START_SECONDS,
            on_start=on_start,
        )

    def run(self) -> None:
        """Run the launch to its end; no process of it is left."""
        Job(
            vendor=self._plan.vendor,
            group=self._plan.group,
            checks=tuple(check.id for check in self._checks),
            processes=self._plan.processes,
            deadline=self._plan.deadline,
        ).write(self._folder)
        try:
            run_launcher(
                [sys.executable, "-m", "verl_hw_tools.conformance.ranks", str(self._folder)],
                environment=self._environment,
                folder=self._folder,
                log=self._folder / "launcher.log",
                watch=self._watcher.look,
                stall_seconds=_NO_LIMIT,
            )
        except LaunchOverdueError as error:
            self._overdue = str(error)

    @property
    def address_was_taken(self) -> bool:
        """Whether another program took the port between our choice and its use."""
        return any("EADDRINUSE" in error or "already in use" in error for error in self._watcher.not_ready.values())

    def results(self) -> list[CheckResult]:
        """Return the results of the first checks of the list, as far as this launch came; at least one."""
        results = []
        for check in self._checks:
            findings = self._watcher.findings.get(check.id, {})
            if len(findings) == self._plan.processes:
                results.append(self._merge(check, findings))
                continue
            if not results and len(self._watcher.ready) < self._plan.processes:
                return self._nothing_started()
            results.append(self._broken(check, findings))
            break
        return results

    def untidy_end(self) -> CheckResult | None:
        """A warning when the processes did not end well after the last check had been answered, else None."""
        if len(self._watcher.ended) < self._plan.processes:
            return None
        deaths = self._deaths()
        if not deaths and self._overdue is None:
            return None
        rank = min(deaths, default=0)
        check = ListedCheck(
            id=f"{self._plan.group}.exit", title="the processes end well", blocks="a clean end of runs", processes=1
        )
        said = [deaths.get(rank) or self._overdue or "", *self._stack(rank)]
        return self._result(
            check, Finding(status=Status.WARN, observed="\n".join(said), expected="exit code 0"), tuple(deaths)
        )

    def _merge(self, check: ListedCheck, findings: Mapping[int, Finding]) -> CheckResult:
        merged, ranks = worst(sorted(findings.items()))
        return self._result(check, merged, ranks)

    def _broken(self, check: ListedCheck, findings: dict[int, Finding]) -> CheckResult:
        """The check at which the launch ended before its time."""
        failed = {rank: finding for rank, finding in findings.items() if finding.status.is_bad}
        signals = self._deaths()
        if failed and not signals:
            # It failed here, and the others never got an answer from this rank.
            return self._merge(check, failed)
        silent = tuple(rank for rank in range(self._plan.processes) if rank not in findings)
        guilty = tuple(sorted(signals)) or silent
        observed = [signals[min(signals)] if signals else self._overdue or "the process ended without a result"]
        observed += [f"rank {rank} said: {finding.observed}" for rank, finding in findings.items() if finding.observed]
        observed += self._stack(guilty[0])
        finding = Finding(
            status=Status.CRASH,
            observed="\n".join(observed),
            expected="an answer",
            seconds=self._plan.deadline if self._overdue else 0.0,
        )
        return self._result(check, finding, guilty)

    def _nothing_started(self) -> list[CheckResult]:
        errors = self._watcher.not_ready
        signals = self._deaths()
        rank = min(errors or signals or [0])
        reason = errors.get(rank) or signals.get(rank) or self._overdue or "a process ended before its first check"
        lines = [f"the processes of this group did not start: {reason}", *([] if errors else self._stack(rank))]
        finding = Finding(status=Status.CRASH, observed="\n".join(lines), expected="a start")
        return [self._result(check, finding, (rank,)) for check in self._checks]

    def _result(self, check: ListedCheck, finding: Finding, ranks: tuple[int, ...]) -> CheckResult:
        return CheckResult(
            id=check.id,
            title=check.title,
            blocks=check.blocks,
            status=finding.status,
            observed=finding.observed,
            expected=finding.expected,
            processes=self._plan.processes,
            ranks=ranks if self._plan.processes > 1 else (),
            seconds=finding.seconds,
        )

    def _deaths(self) -> dict[int, str]:
        """Ranks that died of themselves, with how: of signals if any did, else of another exit status."""
        path = self._folder / events.EXITS_FILE
        statuses = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        # Killed by the launcher, since another rank had died.
        own = {rank: status for rank, status in enumerate(statuses) if status not in (None, 0, -signal.SIGKILL)}
        by_signal = {rank: status for rank, status in own.items() if status < 0}
        return {rank: _how_it_ended(status) for rank, status in (by_signal or own).items()}

    def _stack(self, rank: int) -> list[str]:
        """Where the rank was, from what faulthandler left in its log: innermost first, without our own frames."""
        path = events.log_file(self._folder, rank)
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        marker = max(text.rfind("Fatal Python error"), text.rfind("Timeout (0:"))
        lines = text[marker:].splitlines() if marker >= 0 else text.splitlines()[-_STACK_LINES:]
        frames = [line.strip() for line in lines if marker < 0 or line.startswith("  File")]
        return [line for line in frames if "verl_hw_tools/conformance/child.py" not in line][:_STACK_LINES]


def _how_it_ended(status: int) -> str:
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        return f"the process died of {name}"
    return f"the process ended with exit code {status}"
