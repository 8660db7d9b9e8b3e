# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``ray job submit`` to a cluster that runs already: the driver, which sees no device, and its workers agree."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment

from verl_hw_sim import simulated_environment

PROGRAM = Path(__file__).parent / "ray_workers_program.py"
RAY = Path(sys.executable).with_name("ray")
SECONDS = 420
START_SECONDS = 300  # of Ray on a busy machine: a raylet took longer than 120

# A cluster of this test alone: newer Rays ask for a token, older ones ignore it.
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * SECONDS)]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def job_server(tmp_path):
    """Address of the job server of a cluster with two MLUs and nothing of ours in its environment."""
    folder = tempfile.mkdtemp(prefix="vhw", dir="/tmp")  # short: Ray puts sockets below it
    port = free_port()
    command = [RAY, "start", "--head", "--block", "--disable-usage-stats", "--port=0", f"--temp-dir={folder}"]
    # Ray's own choice is one port for all clusters of a machine: the second one's agent would take no jobs.
    command += [f"--dashboard-agent-listen-port={free_port()}"]
    command += [f"--dashboard-port={port}", "--num-cpus=4", "--num-gpus=0", '--resources={"MLU": 2}']
    with (tmp_path / "ray.log").open("w") as log:
        environment = clean_environment(RAY_raylet_start_wait_time_s=f"{scaled(START_SECONDS):.0f}", **TOKEN)
        cluster = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            deadline = time.monotonic() + scaled(START_SECONDS)
            while not answers(port):
                assert cluster.poll() is None, (tmp_path / "ray.log").read_text()[-3000:]
                assert time.monotonic() < deadline, "the job server does not answer"
                time.sleep(1)
            yield f"http://127.0.0.1:{port}"
        finally:
            for stop in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(cluster.pid, stop)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    cluster.wait(30)
            shutil.rmtree(folder, ignore_errors=True)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def submit(server: str, job: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Submit the program; again while the server, which answers first, still knows no agent to run it."""
    runtime = json.dumps({"env_vars": job})
    command = [RAY, "job", "submit", f"--address={server}", "--runtime-env-json", runtime, "--"]
    deadline = time.monotonic() + scaled(START_SECONDS)
    while True:
        finished = subprocess.run(
            [*command, sys.executable, "-W", "ignore", PROGRAM, "submitted", "{}"],
            env=clean_environment(**TOKEN),
            capture_output=True,
            text=True,
            timeout=scaled(SECONDS),
            check=False,
        )
        if "No available agent" not in finished.stdout + finished.stderr or time.monotonic() > deadline:
            return finished
        time.sleep(2)


def test_a_submitted_job(job_server):
    # VERL_PLATFORM is in the job's own runtime environment: Ray refuses to get it a second time from ray.init.
    job = {**simulated_environment("cambricon", 4), "VERL_PLATFORM": "mlu", "OMP_NUM_THREADS": "1"}
    finished = submit(job_server, job)
    assert finished.returncode == 0, (finished.stdout + finished.stderr)[-3000:]
    (line,) = [line for line in finished.stdout.splitlines() if line.startswith('{"driver"')]
    found = json.loads(line)
    assert found["driver"] == "cambricon"
    assert [witness["platform"] for witness in found["workers"]] == ["cambricon", "cambricon"]
    assert len({witness["card"] for witness in found["workers"]}) == 2
