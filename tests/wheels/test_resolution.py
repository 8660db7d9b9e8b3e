# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the wheels' requirements resolve to outside the workspace: the lowest versions they state, and the newest."""

import json
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from wheelkit import BASE_PYTHON, ROOT, VENDORS, from_index, run, uv

from verl_hw_tools.doctor.versions import version_table

pytestmark = pytest.mark.slow

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
IN_CI = ("verl-hw-core", "verl-hw-cambricon")
WHEELS = ["verl-hw-core", "verl-hw-tools", "verl-hw-sim", *(f"verl-hw-{vendor}" for vendor in VENDORS)]

CASES = [pytest.param(one, marks=[pytest.mark.ci(priority=2)] * (one in IN_CI)) for one in WHEELS]


def requirements(member) -> list[Requirement]:
    found = map(Requirement, member.metadata.get_all("Requires-Dist") or [])
    return [one for one in found if one.marker is None]


def resolved(dist: Path, wheel: str, resolution: str) -> dict[str, Version]:
    """What installing a wheel's requirements would bring. Its own are the direct ones that "lowest-direct" is about."""
    command = [uv(), "pip", "compile", "--quiet", "--no-sources", "--no-header", "--no-annotate"]
    command += ["--resolution", resolution, "--python-version", PYTHON, "--find-links", dist]
    done = from_index([*command, project(wheel)])
    assert done.returncode == 0, done.stderr
    return {name: Version(version) for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", done.stdout, re.MULTILINE)}


def project(wheel: str) -> Path:
    [found] = ROOT.glob(f"*/{wheel}/pyproject.toml")
    return found


@pytest.mark.parametrize("wheel", CASES)
def test_the_lowest_direct_versions_resolve_and_are_the_stated_ones(wheel, built, dist):
    found = resolved(dist, wheel, "lowest-direct")
    for requirement in requirements(built[wheel]):
        [floor] = [Version(one.version) for one in requirement.specifier if one.operator == ">="]
        assert found[requirement.name.lower()] == floor, requirement


@pytest.mark.parametrize("wheel", CASES)
def test_the_newest_versions_resolve_within_the_stated_bounds(wheel, built, dist):
    found = resolved(dist, wheel, "highest")
    for requirement in requirements(built[wheel]):
        assert found[requirement.name.lower()] in requirement.specifier


@pytest.mark.ci(priority=2)
@pytest.mark.parametrize("vendor", VENDORS)
def test_the_bounds_are_those_of_the_table_of_tested_versions(vendor, built):
    table = {row.name: row for row in version_table()}
    stated = {one.name: one.specifier for one in requirements(built[f"verl-hw-{vendor}"])}
    for name in ("verl", "tensordict"):
        row = table[name]
        assert {(one.operator, one.version) for one in stated[name]} == {
            pair for pair in ((">=", row.floor), ("<", row.ceiling)) if pair[1] is not None
        }


@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
def test_tools_alone_work_at_both_ends(resolution, dist, tmp_path):
    """Without torch and verl: the command explains itself, lists what it checks and says what is missing."""
    run([uv(), "venv", "--python", BASE_PYTHON, tmp_path / "venv"])
    python = tmp_path / "venv" / "bin" / "python"
    install = [uv(), "pip", "install", "--python", python]
    done = from_index(
        [*install, "--resolution", resolution, "--no-sources", "--find-links", dist, "-r", project("verl-hw-tools")]
    )
    assert done.returncode == 0, done.stderr
    run([*install, "--no-index", "--no-deps", "--find-links", dist, "verl-hw-core", "verl-hw-tools"])
    run([uv(), "pip", "check", "--python", python])
    main = "import sys; from verl_hw_tools.cli import main; sys.argv[0] = 'verl-hw'; main()"

    def command(*arguments: str) -> str:
        return run([python, "-I", "-c", main, *arguments]).stdout

    assert "--device" in command("new", "--help")
    assert "--vendor" in command("doctor", "--help")
    assert "plugins" in command("doctor", "--list")
    assert "verl not installed" in command("--version")
    assert json.loads(command("detect", "--json")) is not None


@pytest.mark.ci(priority=2)
def test_all_wheels_together_fit_and_register(built, tmp_path):
    from releaselib import clean_environment

    python = clean_environment.make(tmp_path / "venv", [one.wheel for one in built.values()])  # with uv pip check
    code = (
        "import json, verl; from verl.plugin.platform.platform_manager import PlatformRegistry as r; "
        "from verl_hw_core import load_report; "
        "print(json.dumps([{n: r.get(n).__module__ for n in r.registered_names()}, len(load_report.problems())]))"
    )
    platforms, problems = json.loads(run([python, "-I", "-c", code]).stdout.splitlines()[-1])
    assert {name: platforms[name] for name in VENDORS} == {vendor: f"verl_hw_{vendor}.platform" for vendor in VENDORS}
    assert problems == 0
