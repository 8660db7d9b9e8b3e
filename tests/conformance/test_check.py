# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The conformance suite over the simulated vendors, and a package outside this repository that adds checks."""

import os
from pathlib import Path

import pytest

from verl_hw_tools.conformance import Settings, Status, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

# What the simulated stacks lack, as the real ones do; see verl_hw_sim.profiles.
# Their arithmetic is the CPU's, whose histc takes no integers.
KNOWN_WARNINGS = {
    "cambricon": {"operators.histc_int32"},
    "enflame": {"operators.histc_int32", "module.ipc_collect"},
    "intel": {"operators.histc_int32", "module.ipc_collect"},
}
TWO_MESH_DIMENSIONS = {"training.hsdp1", "training.hsdp2", "training.hsdp2_native"}  # need four devices


@pytest.mark.parametrize(
    ("vendor", "devices"),
    [pytest.param("cambricon", 2, marks=pytest.mark.ci), ("cambricon", 4), ("enflame", 4), ("intel", 4)],
)
def test_simulated_devices_pass(vendor, devices, monkeypatch):
    monkeypatch.setenv("VERL_HW_SIM", f"{vendor}:{devices}")
    monkeypatch.delenv("VERL_HW_SIM_LIMITS", raising=False)
    report = run()
    assert {result.id: result.observed for result in report.bad} == {}
    skipped = {result.id for result in report.results if result.status is Status.SKIP}
    assert skipped == (set() if devices == 4 else TWO_MESH_DIMENSIONS)
    warned = {result.id: result.observed for result in report.results if result.status is Status.WARN}
    assert warned.keys() <= KNOWN_WARNINGS[vendor], warned
    assert report.machine.vendor == vendor
    assert "SIMULATED" in report.machine.summary
    assert report.processes == devices


ACME_CHECKS = '''
from verl_hw_tools.conformance import CheckWarned, check, require

@check("acme.adds", blocks="sums")
def adds(bench):
    """One and one is two"""
    import torch
    require(torch.ones(1, device=bench.device).add(1).item() == 2.0, "another number", "2")

@check("acme.warns", blocks="nothing")
def warns(bench):
    """It says what is slow"""
    raise CheckWarned("slow", "fast")

@check("acme.elsewhere", blocks="nothing", vendors=("nobody",))
def elsewhere(bench):
    """For another chip"""
    raise AssertionError
'''


@pytest.fixture
def install_checks(tmp_path, monkeypatch):
    """Install a distribution with checks, for this process and its children."""

    def install(source: str) -> None:
        (tmp_path / "acme_checks.py").write_text(source)
        metadata = tmp_path / "acme_checks-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-checks\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("[verl_hw.checks]\nacme = acme_checks\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
        monkeypatch.setenv("VERL_HW_SIM", "cambricon:1")

    return install


@pytest.mark.ci
def test_another_package_adds_checks(install_checks):
    install_checks(ACME_CHECKS)
    report = run(Settings(only=("acme",)))
    assert {result.id: result.status for result in report.results} == {
        "acme.adds": Status.OK,
        "acme.warns": Status.WARN,
    }
    assert report.by_id("acme.adds").title == "One and one is two"
    assert report.passed


@pytest.mark.ci(priority=2)
def test_a_package_whose_checks_are_broken_is_a_failure(install_checks):
    install_checks("raise ImportError('libacme.so is missing')")
    report = run(Settings(only=("acme",)))
    [result] = report.results
    assert (result.id, result.status) == ("acme.load", Status.FAIL)
    assert "libacme.so is missing" in result.observed


@pytest.mark.ci(priority=2)
def test_one_device_skips_what_needs_several(monkeypatch, tmp_path):
    monkeypatch.setenv("VERL_HW_SIM", "enflame:1")
    report = run(Settings(only=("selection",)))
    skipped = {result.id for result in report.results if result.status is Status.SKIP}
    assert "selection.ranks" in skipped
    assert "one is visible" in report.by_id("selection.tensors").observed
    assert report.by_id("selection.out_of_range").status is Status.OK
    assert report.passed
    assert not list(Path(tmp_path).iterdir())
