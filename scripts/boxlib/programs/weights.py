# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Weights for rollout workers: verl's transfer between processes that share a device, and checkpoint engines.

The programs of ``tests/conformance``, in processes that are begun anew. Run as a part it judges; as ``RANK 2 WAY OUT``
it is one end of a transfer.
"""

import json
import multiprocessing
import sys
from pathlib import Path
from typing import Any

from boxlib.answers import Answer, NotHereError, WrongError, read_job, require_devices, step
from boxlib.ranks import run_ranks
from boxlib.running import Job

_ME = "boxlib.programs.weights"
_UPDATES = 2
SHARED_MEMORY, IPC = "shm", "ipc"
_SENDER = 1


def main() -> None:
    """Run the four ways."""
    job = read_job()
    for way in (SHARED_MEMORY, IPC):
        with step(job, f"transfer-{way}") as answer:
            _transfer(way, job, answer)
    with step(job, "sync-host") as answer:
        _sync("gloo", answer)
    with step(job, "sync-device") as answer:
        require_devices(job, 2)
        _sync("nccl", answer)  # verl's name for the library of whatever device this is


def _transfer(way: str, job: Job, answer: Answer) -> None:
    """Send from one process and receive in another, both on device 0."""
    out = Path(way).absolute()
    out.mkdir()
    run_ranks(_ME, [way, str(out)], 2, out, {})
    found: dict[str, Any] = json.loads((out / "received.json").read_text(encoding="utf-8"))
    if found.get("unsupported"):
        raise NotHereError("this device has no handles of its memory that verl could use")
    wrong = [name for name, (right, device) in found["found"].items() if not right or device != f"{job.device_type}:0"]
    if wrong or not found["complete"] or found["ends"][-1:] != [True]:
        raise WrongError(f"wrong or elsewhere: {', '.join(wrong) or 'none'}; complete: {found['complete']}")
    answer.figures["tensors"] = len(found["found"])


def end_of_transfer(number: int, way: str, out: Path) -> None:
    """Be the receiver, which is 0, or the sender."""
    from colocated_transfer_program import receive, send
    from verl.utils.device import is_support_ipc

    handle, through_host = f"ipc://{out}/socket", way == SHARED_MEMORY
    if not through_host and not is_support_ipc():
        found: dict[str, Any] = {"unsupported": True}
    elif number == _SENDER:
        send(handle, through_host, 0)
        return
    else:
        found = receive(handle, through_host, 0)
    if number != _SENDER:
        (out / "received.json").write_text(json.dumps(found), encoding="utf-8")


def _sync(backend: str, answer: Answer) -> None:
    """Update one rollout worker twice from one trainer, with checksums."""
    import weight_sync_crew

    weight_sync_crew.FORK = multiprocessing.get_context("spawn")
    with weight_sync_crew.Crew(backend, trainers=1, rollouts=1, checksum=True) as crew:
        for version in range(1, _UPDATES + 1):
            answers = crew.update(version)
            received = answers["rollout 0"]
            wrong = {name: one for name, one in answers.items() if {"error", "dead", "silent"} & set(one)}
            if wrong:
                raise WrongError(f"update {version}: {wrong}")
            if received["differing"] or not received["in order"]:
                raise WrongError(
                    f"update {version}: {received['differing']} differ; order kept: {received['in order']}"
                )
            answer.figures["updates"] = version


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main()
    else:
        end_of_transfer(int(sys.argv[1]), sys.argv[3], Path(sys.argv[4]))
