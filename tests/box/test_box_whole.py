# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A real box, in an image that has torch and transformers alone, on one simulated device, without a network."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from documents import ROOT
from machine_speed import scaled
from packaging.requirements import Requirement
from platformkit import clean_environment

from boxlib import record
from boxlib.image import normalized
from boxlib.running import BUDGET_SECONDS, PARTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

IMAGE = ("torch", "numpy", "transformers")
NEEDS_SEVERAL = {"parity-ranks", "check-ranks", "sync-device"}
# A network namespace of its own, where this user may have one; else only what would be fetched cannot be.
ALONE = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def closure(names: Iterable[str]) -> set[str]:
    """The distributions and all that they require, as this environment has them."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = normalized(waiting.pop())
        if name not in found:
            found.add(name)
            wanted = map(Requirement, metadata.distribution(name).requires or ())
            waiting += [one.name for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def image_of(names: Iterable[str], folder: Path) -> Path:
    """A folder for the path that has these distributions and no others; nothing is copied."""
    folder.mkdir()
    for name in closure(names):
        distribution = metadata.distribution(name)
        tops = {Path(file).parts[0] for file in distribution.files or ()}
        for top in tops - {"..", "bin", "__pycache__"}:
            source = Path(str(distribution.locate_file(top)))
            if source.exists() and not (folder / top).exists():
                (folder / top).symlink_to(source)
    return folder


@pytest.fixture(scope="module")
def box(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("box") / "box"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    options = ["--vendor", "cambricon", "--python", python, "--with-simulator"]
    done = subprocess.run(
        [sys.executable, "-m", "devlib.box", str(folder), *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        timeout=scaled(900),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def finished(box, tmp_path_factory) -> tuple[subprocess.CompletedProcess[str], record.Record]:
    folder = tmp_path_factory.mktemp("run")
    image = image_of(IMAGE, folder / "image")
    budget = scaled(BUDGET_SECONDS)
    may = subprocess.run([*ALONE, "true"], capture_output=True, timeout=scaled(30), check=False).returncode == 0
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    done = subprocess.run(
        [*(ALONE if may else []), str(base), str(box / "run_box.py"), "--budget", f"{budget:.0f}"],
        cwd=folder,
        env=clean_environment(
            VERL_HW_SIM="cambricon:1",
            PYTHONPATH=str(image),
            PYTHONNOUSERSITE="1",
            # What asks for a network gets none, in either case.
            http_proxy="http://127.0.0.1:9",
            https_proxy="http://127.0.0.1:9",
            no_proxy="127.0.0.1,localhost",
        ),
        capture_output=True,
        text=True,
        timeout=budget + scaled(60),
        check=False,
    )
    results = folder / "box-results" / "results.json"
    assert results.exists(), done.stdout + done.stderr
    if shutil.which("unshare") and not may:
        print("no network namespace for this user: the network was kept away by a proxy alone")
    return done, record.read(results)


def test_it_is_small_enough_to_travel(box):
    assert sum(path.stat().st_size for path in box.rglob("*") if path.is_file()) <= 64 * 2**20


def test_everything_that_one_device_can_show_passed(finished):
    done, results = finished
    outcomes = {step.name: (step.outcome, step.reason) for step in results.steps}
    assert list(outcomes) == [name for part in PARTS for name in part.steps]
    one = {name: outcome for name, outcome in outcomes.items() if name not in NEEDS_SEVERAL | {"transfer-ipc"}}
    assert {name: outcome for name, outcome in one.items() if outcome != ("passed", "")} == {}, done.stdout
    assert {outcomes[name] for name in NEEDS_SEVERAL} == {("not run", "one device")}
    assert outcomes["transfer-ipc"][0] == "not run"
    assert done.returncode == 0


def test_the_simulated_device_is_said_to_be_one(finished):
    _, results = finished
    assert (results.kind, results.vendor, results.device_type, results.devices) == ("simulated", "cambricon", "mlu", 1)


def test_numbers_are_the_cpus_own_and_verls_own(finished):
    _, results = finished
    figures = {step.name: step.figures for step in results.steps}
    differences = {name: value for name, value in figures["parity"].items() if "fsdp2" in name}
    assert len(differences) == 2
    assert max(differences.values()) <= 1e-9
    assert figures["base-engine"]["largest relative difference of a loss or gradient norm"] == 0.0
    assert figures["base-engine"]["ratio of median step times, ours to verl's"] > 0
    assert figures["sft"]["differing numbers"] == 0
    assert figures["grpo"]["steps"] == 3


def test_it_kept_to_its_time(finished):
    _, results = finished
    assert results.seconds <= scaled(BUDGET_SECONDS)
