# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m verl_hw_tools.conformance.child FOLDER``: one rank of a launch, which runs its checks in order."""

import faulthandler
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from verl_hw_tools.conformance import events, registry
from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.job import Job
from verl_hw_tools.conformance.results import Finding, Status
from verl_hw_tools.conformance.verdicts import CheckFailed, CheckSkipped, CheckVerdict, CheckWarned

# Part of its deadline after which a check that hangs leaves its stack in the log. The command ends it a little later.
_DUMP_AT = 0.8
_LONGEST_TEXT = 700
_STATUSES = {CheckFailed: Status.FAIL, CheckSkipped: Status.SKIP, CheckWarned: Status.WARN}


def main(folder: Path) -> None:
    """Run this rank's part of the job in ``folder``."""
    faulthandler.enable()
    job = Job.read(folder)
    rank = int(os.environ["RANK"])
    writer = events.EventWriter(folder, rank)
    try:
        checks = {check.id: check for check in registry.load(registry.groups()[job.group])}
        bench = _bench(job, rank, folder)
        meeting = _Meeting(job, rank) if job.processes > 1 else None
        if meeting is not None:
            meeting.open_process_group(bench)
    except Exception as error:
        writer.write(events.NOT_READY, error=describe(error))
        raise
    writer.write(events.READY)
    for check_id in job.checks:
        writer.write(events.START, id=check_id)
        finding = run_check(checks[check_id], bench)
        writer.write(
            events.RESULT,
            id=check_id,
            status=finding.status.value,
            observed=finding.observed,
            expected=finding.expected,
            seconds=finding.seconds,
        )
        if meeting is not None:
            meeting.wait_for_all(check_id)
    writer.write(events.END)
    if meeting is not None:
        meeting.close_process_group()


def run_check(check: registry.Check, bench: Bench) -> Finding:
    """Run one check and turn whatever it raises into a finding."""
    start = time.perf_counter()
    faulthandler.dump_traceback_later(bench.deadline * _DUMP_AT, exit=False)
    try:
        said = check.run(bench)
        finding = Finding(status=Status.OK, observed=said or "")
    except CheckVerdict as verdict:
        finding = Finding(status=_STATUSES[type(verdict)], observed=verdict.observed, expected=verdict.expected)
    except Exception as error:  # noqa: BLE001 - whatever a vendor's stack raises is the result
        finding = Finding(status=Status.FAIL, observed=describe(error), expected="no error")
    finally:
        faulthandler.cancel_dump_traceback_later()
    return Finding(
        status=finding.status,
        observed=finding.observed[:_LONGEST_TEXT],
        expected=finding.expected[:_LONGEST_TEXT],
        seconds=time.perf_counter() - start,
    )


def describe(error: BaseException) -> str:
    """Type and message of an error, without torch's C++ stack."""
    message = str(error).split("Exception raised from", maxsplit=1)[0].strip()
    return f"{type(error).__name__}: {message}"[:_LONGEST_TEXT]


def _bench(job: Job, rank: int, folder: Path) -> Bench:
    import torch

    from verl_hw_core.platform import vendor_module
    from verl_hw_tools.installed import find_wheel, installed_wheels

    spec = find_wheel(job.vendor, installed_wheels()).spec
    if spec is None:
        raise AssertionError("find_wheel returns no wheel without facts")
    module: Any = vendor_module.device_module(spec)
    if job.processes > 1:
        module.set_device(rank)
    return Bench(
        spec=spec,
        module=module,
        device=torch.device(spec.device_name, rank if job.processes > 1 else 0),
        rank=rank,
        world_size=job.processes,
        device_count=int(module.device_count()),
        folder=folder,
        deadline=job.deadline,
    )


class _Meeting:
    """The ranks' process group, and a meeting point outside it that a broken collective does not disturb."""

    def __init__(self, job: Job, rank: int) -> None:
        from torch.distributed import TCPStore

        self._size, self._rank, self._deadline = job.processes, rank, job.deadline
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        # Ranks that arrive late import the same torch on fewer cores.
        self._store = TCPStore(host, port, job.processes, is_master=rank == 0, timeout=timedelta(seconds=300))

    def open_process_group(self, bench: Bench) -> None:
        """Open the default group as verl's workers do: gloo for the CPU, the vendor's library for the device."""
        import torch.distributed as dist

        dist.init_process_group(
            f"cpu:gloo,{bench.type}:{bench.spec.ccl_backend}",
            store=dist.PrefixStore("group", self._store),
            rank=self._rank,
            world_size=self._size,
            # Longer than the deadline: a hang must be seen as one, not end as an error of some rank.
            timeout=timedelta(seconds=self._deadline * 3 + 60),
        )

    def wait_for_all(self, name: str) -> None:
        """Return when all ranks have come here with this name: none starts a collective that others do not expect."""
        self._store.set(f"{name}/{self._rank}", "")
        self._store.wait([f"{name}/{rank}" for rank in range(self._size)], timedelta(days=1))

    def close_process_group(self) -> None:
        """Close the default group. Rank 0 holds the store, so it goes last."""
        import torch.distributed as dist

        dist.destroy_process_group()
        self._store.set(f"closed/{self._rank}", "")
        if self._rank == 0:
            self._store.wait([f"closed/{rank}" for rank in range(self._size)], timedelta(seconds=self._deadline))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
