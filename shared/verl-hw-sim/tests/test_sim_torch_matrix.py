# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""All tests of this package on every supported release of torch: slow, nightly. Each downloads several GB."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from verl_hw_sim.torch_support import TORCH_RELEASES

PACKAGE = Path(__file__).parents[1]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# Python's own part in the compiled half is small: its other releases with an old torch and with the locked one.
OTHER_PYTHONS = [
    (release, python) for release in ("2.9", "2.13") for python in ("3.10", "3.11", "3.12") if python != PYTHON
]
CASES = [*((release, PYTHON) for release in TORCH_RELEASES), *OTHER_PYTHONS]
TEST_TOOLS = ("pytest>=8.3", "pytest-timeout>=2.3")


def _uv(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if uv is None:
        pytest.skip("uv is not on PATH")
    # Outside the workspace, which pins the torch of the locked environment; no cache, which would keep every torch.
    return subprocess.run([uv, "--no-cache", *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def environment(request, tmp_path):
    """Python of an environment with one torch; skips where there is no such Python or the index lacks that torch."""
    release, python = request.param
    # An environment made before saves the download.
    made = os.environ.get(f"VERL_HW_TEST_TORCH_{release}_PYTHON_{python}".replace(".", "_"))
    if made:
        yield made
        return
    folder = tmp_path / "venv"
    program = str(folder / "bin" / "python")
    steps = [
        ("venv", "--quiet", "--python", python, str(folder)),
        ("pip", "install", "--quiet", "--python", program, f"torch=={release}.*", "numpy", *TEST_TOOLS, str(PACKAGE)),
    ]
    for step in steps:
        done = _uv(tmp_path, *step)
        if done.returncode != 0:
            pytest.skip(f"cannot make an environment with torch {release}: {done.stderr.strip()[-300:]}")
    yield program
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("environment", CASES, ids=lambda case: f"torch{case[0]}-python{case[1]}", indirect=True)
def test_the_tests_of_this_package_pass(environment, tmp_path, run_python):
    """Nothing may fail, and only what needs a CPU build of torch may be skipped, and only for that reason."""
    report = tmp_path / "report.xml"
    tests = run_python(
        *("-m", "pytest", "-q", "-m", "slow or not slow", "-p", "no:cacheprovider", f"--junitxml={report}"),
        *(str(PACKAGE / "tests"), f"--ignore={__file__}"),
        program=environment,
        seconds=7000,
    )
    assert tests.returncode == 0, tests.stdout[-6000:] + tests.stderr[-2000:]
    cases = ElementTree.parse(report).findall(".//testcase")  # noqa: S314 - pytest wrote it
    skipped = {
        case.get("name"): case.find("skipped").get("message") for case in cases if case.find("skipped") is not None
    }
    assert [name for name in skipped if "metax" not in name] == []
    assert [reason for reason in skipped.values() if "needs a CPU build of torch" not in reason] == []
    for vendor in ("cambricon", "enflame", "intel"):
        assert [case for case in cases if vendor in case.get("name") and case.get("name") not in skipped]
