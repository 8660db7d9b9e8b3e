# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Weight sync between processes on this platform, scenario by scenario; prints what each rank came to, as JSON.

Usage: ``python weight_sync_program.py BACKEND SCENARIO...``. verl is imported once, workers are forked.
"""

import json
import os
import secrets
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from machine_speed import scaled
from weight_sync_crew import Crew, Fault


def three_updates(backend: str) -> dict:
    """Two rollout workers, a trainer rank that only drains; the group stays open."""
    with Crew(backend, trainers=2, rollouts=2) as crew:
        return {str(version): crew.update(version) for version in range(3)}


def relays(backend: str) -> dict:
    with Crew(backend, trainers=3, rollouts=1, multi_sender=True, checksum=True) as crew:
        return {"update": crew.update(1), "again": crew.update(2)}


def overwritten(backend: str) -> dict:
    """This trainer overwrites each tensor when it is asked for the next one."""
    with Crew(backend, trainers=2, rollouts=2, multi_sender=True, checksum=True) as crew:
        answers = {"relay": crew.update(1, overwritten=True)}
    with Crew(backend, trainers=1, rollouts=1) as crew:
        return answers | {str(version): crew.update(version, overwritten=True) for version in range(2, 4)}


def elastic(backend: str) -> dict:
    with Crew(backend, rollouts=1) as crew:
        answers = {"one": crew.update(1)}
        crew.add_rollout()
        crew.add_rollout()
        answers["three"] = crew.update(2)
        crew.remove_rollout(0)
        answers["two"] = crew.update(3)
        return answers


def closing_each_time(backend: str) -> dict:
    with Crew(backend, rollouts=1, rebuild_group=True) as crew:
        return {"first": crew.update(1), "second": crew.update(2)}


def _failing(backend: str, where: str, fault: Fault, *, first: bool = True, **options) -> dict:
    """An update, one with a fault, and one in the processes that are left."""
    with Crew(backend, **options) as crew:
        answers = {"before": crew.update(1)} if first else {}
        began = time.monotonic()
        if fault.kind == "stop":
            timer = threading.Timer(scaled(13.0), _wake, (crew, where))
            timer.start()
        answers["failing"] = crew.update(2, {where: fault})
        answers["seconds"] = time.monotonic() - began
        kind, index = where.split()
        if fault.kind == "die" and kind == "rollout":
            crew.remove_rollout(int(index))
        if not (fault.kind == "die" and kind == "trainer"):
            answers["after"] = crew.update(3)
        return answers


def _wake(crew: Crew, where: str) -> None:
    kind, index = where.split()
    workers = crew.trainers if kind == "trainer" else crew.rollouts
    os.kill(workers[int(index)].process.pid, signal.SIGCONT)


def rollout_dies(backend: str) -> dict:
    return _failing(backend, "rollout 1", Fault("die", 6), trainers=2)


def sender_dies(backend: str) -> dict:
    return _failing(backend, "trainer 0", Fault("die", 6))


def rollout_hangs(backend: str) -> dict:
    return _failing(backend, "rollout 1", Fault("stop", 6), bucket_timeout=scaled(4.0))


def sender_hangs(backend: str) -> dict:
    return _failing(backend, "trainer 0", Fault("stop", 6), bucket_timeout=scaled(4.0))


def rollout_is_late(backend: str) -> dict:
    return _failing(backend, "rollout 1", Fault("late", scaled(9)), first=False, rendezvous_timeout=scaled(6.0))


def loader_raises(backend: str) -> dict:
    return _failing(backend, "rollout 1", Fault("raise", 6))


def loader_raises_at_the_end(backend: str) -> dict:
    """When every byte has long arrived, while the last tensor is loaded."""
    return _failing(backend, "rollout 1", Fault("dawdle", 18))


def weights_raise(backend: str) -> dict:
    return _failing(backend, "trainer 0", Fault("raise", 6))


def shape_differs(backend: str) -> dict:
    return _failing(backend, "trainer 0", Fault("reshape"))


def trainer_ranks_differ(backend: str) -> dict:
    return _failing(backend, "trainer 1", Fault("rename"), trainers=2, rollouts=1, multi_sender=True)


def bytes_differ(backend: str) -> dict:
    return _failing(backend, "rollout 0", Fault("corrupt"), checksum=True)


def settings_differ(backend: str) -> dict:
    """A rollout worker with another bucket size."""
    with Crew(backend) as crew:
        crew._settings["checksum"] = True
        crew.add_rollout()
        return {"failing": crew.update(1)}


def strangers(backend: str) -> dict:
    """What listens, and whether strangers at the door change anything."""
    with Crew(backend, rollouts=1) as crew:
        worker = crew.trainers[0]
        worker.call("prepare")
        metadata = worker.answer()["metadata"]
        endpoint = metadata.endpoint
        listening = _listening_addresses(worker.process.pid)
        stop = threading.Event()
        visitors = [threading.Thread(target=_visit, args=(crew, kind, stop)) for kind in ("noise", "silence", "guess")]
        for one in visitors:
            one.start()
        answers = {
            "listening": listening,
            "shown": repr(metadata),
            "token hidden": endpoint.token not in repr(metadata),
        }
        answers["update"] = crew.update(1)
        stop.set()
        for one in visitors:
            one.join()
        answers["after"] = _listening_addresses(worker.process.pid)
        return answers


def _visit(crew: Crew, kind: str, stop: threading.Event) -> None:
    """Connect to whatever the sender listens on, again and again."""
    opened = []
    while not stop.is_set():
        for address in _listening_addresses(crew.trainers[0].process.pid):
            host, _, port = address.rpartition(":")
            try:
                one = socket.create_connection((host, int(port)), timeout=1)
                if kind == "noise":
                    one.sendall(secrets.token_bytes(5000))
                elif kind == "guess":
                    body = json.dumps({"rank": 1, "nonce": "\ud800", "proof": "0" * 64, "pickle": "no"}).encode()
                    one.sendall(len(body).to_bytes(4, "big") + body)
                opened.append(one)
            except OSError:
                continue
        time.sleep(0.02)
    for one in opened:
        one.close()


def _listening_addresses(pid: int) -> list[str]:
    """TCP addresses on which a process listens, from /proc."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for table in ("tcp", "tcp6"):
        with Path(f"/proc/{pid}/net/{table}").open() as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    host, port = fields[1].split(":")
                    if table == "tcp":
                        dotted = socket.inet_ntoa(bytes.fromhex(host)[::-1])
                        found.append(f"{dotted}:{int(port, 16)}")
                    else:
                        found.append(f"[{host}]:{int(port, 16)}")
    return sorted(found)


def main() -> None:
    backend, *names = sys.argv[1:]
    answers = {}
    for name in names:
        answers[name] = globals()[name](backend)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
