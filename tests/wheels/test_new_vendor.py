# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw new``: the package that it writes is built, installed beside the others, passes its tests and trains."""

import sys
from pathlib import Path

import pytest
from platformkit import clean_environment
from wheelkit import run, uv

from releaselib import clean_environment as environments

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def acme(tmp_path_factory, built):
    """Source and clean environment of a new vendor's package, all our wheels beside it."""
    folder = tmp_path_factory.mktemp("new")
    command = [Path(sys.executable).with_name("verl-hw"), "new", "acme", "--device", "apu", "--ccl", "accl"]
    run([*command, "--display-name", "Acme APU"], cwd=folder)
    source = folder / "verl-hw-acme"
    # As its own repository does, but with the builder of the lock: no network.
    build = [uv(), "build", "--wheel", "--offline", "--no-build-isolation", "--python", sys.executable]
    run([*build, "--out-dir", folder / "dist", source])
    [wheel] = (folder / "dist").glob("*.whl")
    run([Path(sys.executable).with_name("twine"), "check", "--strict", wheel])
    # Installing ends with uv pip check over all of it.
    return source, environments.make(folder / "venv", [wheel, *(one.wheel for one in built.values())])


@pytest.fixture
def environment(tmp_path):
    return clean_environment(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")


def test_its_own_tests_pass_at_once(acme, environment):
    source, python = acme
    tests = source / "tests" / "test_acme_platform.py"
    done = run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests], cwd=source, env=environment)
    assert "5 passed" in done.stdout


def test_the_demo_trains_on_it(acme, environment, tmp_path):
    _, python = acme
    command = [python.with_name("verl-hw"), "demo", "--vendor", "acme", "--steps", "4", "--output", tmp_path / "out"]
    done = run(command, env=environment, seconds=900)
    assert "platform acme, engine AcmeFSDPEngineWithLMHead (fsdp2), collectives accl" in done.stdout
    assert "rank 1 on simulated device apu:1" in done.stdout
    assert (tmp_path / "out" / "whole-run" / "metrics.jsonl").read_text().count("train/loss") == 4


def test_the_conformance_suite_passes_on_it(acme, environment):
    source, python = acme
    tests = source / "tests" / "test_acme_conformance.py"
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    assert "1 passed" in run(command, cwd=source, env=environment, seconds=1400).stdout
