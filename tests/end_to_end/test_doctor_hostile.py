# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The doctor where others' code misbehaves and installs are half done: a report all the same, and nothing but it."""

import json
from pathlib import Path

import pytest
from doctorkit import ACME_SPEC, Answer, Patient, assert_found

SPEC = ACME_SPEC.replace("acme", "zeta")
ODD = """
from pathlib import Path
from verl_hw_tools.doctor import check, fail, ok
@check("acme.nothing", why="a check may forget its answer")
def nothing(facts): pass
@check("acme.path", why="a check may answer with something else")
def path(facts): return ok(Path("driver"))
@check("acme.fine", why="the others go on")
def fine(facts):
    import os
    os.system("echo a banner")
    return ok("fine")
"""


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient.make(tmp_path)


class TestWhatPrints:
    """A wheel's facts are Python, and read in the command's own process."""

    @pytest.mark.parametrize("code", ["print('a banner')", "import os; os.system('echo a banner')"])
    def test_json_stays_json(self, patient: Patient, code: str) -> None:
        patient.wheel("zeta", f"{code}\n{SPEC}")
        answer = patient.doctor("--check", "wheels")
        assert (answer["wheels.facts"]["status"], answer.stderr) == ("ok", "a banner\n")

    def test_so_does_that_of_a_bug_report_and_of_the_list(self, patient: Patient) -> None:
        patient.wheel("zeta", f"import os; os.system('echo a banner')\n{SPEC}")
        done = patient.run("env", "--json", VERL_USE_EXTERNAL_PLUGINS="none")
        assert json.loads(done.stdout)["vendors"][-1]["vendor"] == "zeta"
        assert done.stderr == "a banner\n"

    def test_facts_that_end_the_process_are_a_broken_wheel(self, patient: Patient) -> None:
        patient.wheel("zeta", "raise SystemExit(0)")
        answer = patient.doctor("--check", "wheels.facts")
        assert_found(answer, "wheels.facts", "fail", "SystemExit: 0", "--force-reinstall --no-deps verl-hw-zeta")


def test_answers_of_others_checks_that_are_none_are_their_fault(patient: Patient) -> None:
    patient.acme(extension="")
    patient.module("verl_hw_acme/checks.py", ODD)
    points = {"verl.plugins": {"acme": "verl_hw_acme"}, "verl_hw.doctor": {"acme": "verl_hw_acme.checks"}}
    patient.package("verl-hw-acme", "1.0", requires=["verl-hw-core>=0.1,<0.2"], points=points)
    answer = patient.doctor("--check", "acme")
    assert answer.code == 1
    assert {name: answer[f"acme.{name}"]["status"] for name in ("nothing", "path", "fine")} == {
        **{"nothing": "crash", "path": "crash", "fine": "ok"}
    }
    assert "acme.nothing returned None" in answer["acme.nothing"]["observed"]
    assert "in path" in answer["acme.path"]["details"], "the traceback ends in the check that is wrong"
    done = patient.run("doctor", "--json", "--check", "system", "--check", "acme.typo")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no check for this vendor is called 'acme.typo'" in done.stderr
    patient.module("verl_hw_acme/checks.py", ODD.replace('why="the others go on"', "why=3"))
    assert "why and doc are text, got 3" in patient.doctor("--check", "acme.fine")["acme.load"]["observed"]


class TestHalfInstalled:
    """What interrupted installs and moved folders leave."""

    @pytest.fixture(scope="class")
    def answer(self, tmp_path_factory: pytest.TempPathFactory) -> Answer:
        patient = Patient.make(tmp_path_factory.mktemp("half"))
        # An entry point whose package is gone, in a folder without metadata.
        patient.module("gone_plugin-1.0.dist-info/entry_points.txt", "[verl.plugins]\ngone = gone_plugin\n")
        patient.wheel("zeta", SPEC, requires="verl-hw-core>=0.1 , <<2")
        return patient.doctor("--check", "wheels", "--check", "plugins", VERL_USE_EXTERNAL_PLUGINS="gone,zeta")

    def test_no_check_breaks(self, answer: Answer) -> None:
        assert answer.code == 1
        assert answer.bad == {"plugins.load"}

    def test_the_leftover_is_named_with_its_package(self, answer: Answer) -> None:
        mend = "pip install --force-reinstall --no-deps gone_plugin   # gone on purpose: pip uninstall gone_plugin"
        assert_found(answer, "plugins.load", "fail", "gone: ModuleNotFoundError: No module named 'gone_plugin'", mend)

    def test_a_bug_report_of_it(self, patient: Patient) -> None:
        patient.module("gone_plugin-1.0.dist-info/entry_points.txt", "[verl.plugins]\ngone = gone_plugin\n")
        done = patient.run("env", "--json", VERL_USE_EXTERNAL_PLUGINS="none")
        found = json.loads(done.stdout)["plugins"]
        assert {"name": "gone", "package": "gone_plugin unknown", "state": "not loaded"} in found


def test_verl_and_the_vendors_vllm_want_opposite_versions(patient: Patient) -> None:
    """What one finding says to type must not be what the next one says to undo."""
    patient.package("verl", "0.9.1", requires=["numpy>=2.0.0"])
    patient.package("vllm", "0.9", requires=["numpy<2"])
    patient.package("numpy", "1.26.4")
    before = patient.doctor("--check", "packages.requirements")
    observed = "verl 0.9.1 wants numpy>=2.0.0, found 1.26.4; but vllm 0.9 wants numpy<2"
    assert_found(before, "packages.requirements", "fail", observed, "pip install --no-deps 'numpy>=2.0.0'")
    (patient.folder / "site" / "numpy-1.26.4.dist-info").rename(patient.folder / "site" / "numpy-2.2.0.dist-info")
    patient.package("numpy", "2.2.0")
    after = patient.doctor("--check", "packages.requirements")
    mend = "leave numpy 2.2.0, which verl needs, and take a build of vllm that allows it"
    assert_found(after, "packages.requirements", "warn", "vllm 0.9 wants numpy<2, found 2.2.0", mend)


def test_no_index_is_asked_for_what_only_the_vendor_has(patient: Patient) -> None:
    """Anybody can take such a name on an index, and what is there under torch's and vLLM's is for NVIDIA."""
    patient.acme(extension="import torch_acme_kernels\n")
    answer = patient.doctor("--check", "runtime.devices", VERL_USE_EXTERNAL_PLUGINS="acme")
    assert_found(answer, "runtime.devices", "fail", "No module named 'torch_acme_kernels'", "use the vendor's image")


def test_an_old_verl_is_upgraded_without_touching_torch(patient: Patient) -> None:
    said = "verl-hw-zeta needs verl>=0.9 (its plugin interface), found 0.7.1: pip install -U 'verl>=0.9'"
    patient.wheel(
        "zeta", SPEC, code=f"from verl_hw_core.errors import VerlVersionError\nraise VerlVersionError({said!r})"
    )
    answer = patient.doctor("--check", "plugins.load", VERL_USE_EXTERNAL_PLUGINS="zeta")
    assert_found(answer, "plugins.load", "fail", "found 0.7.1", "pip install -U --no-deps 'verl>=0.9'")


def test_a_mask_of_devices_that_are_all_gone_is_not_mended_with_an_empty_one(patient: Patient) -> None:
    patient.acme(extension="", count=0)
    answer = patient.doctor("--check", "runtime", VERL_USE_EXTERNAL_PLUGINS="acme", ACME_VISIBLE_DEVICES="0,1")
    assert_found(answer, "runtime.devices", "fail", "no device of ACME_VISIBLE_DEVICES=0,1", "check the driver")


def test_a_mask_of_other_numbers_is_not_mended_with_somebody_elses_devices(patient: Patient) -> None:
    patient.acme(extension="", count=1)
    answer = patient.doctor("--check", "runtime", VERL_USE_EXTERNAL_PLUGINS="acme", ACME_VISIBLE_DEVICES="4,5")
    assert_found(answer, "runtime.devices", "fail", "lists 2 devices", "unset ACME_VISIBLE_DEVICES")


def test_a_selector_that_contradicts_the_mask_is_readable_and_goes(patient: Patient) -> None:
    answer = patient.doctor(
        *("--vendor", "xpu", "--check", "environment.visible"),
        ZE_AFFINITY_MASK="0",
        ONEAPI_DEVICE_SELECTOR="level_zero:1",
    )
    mend = "unset ONEAPI_DEVICE_SELECTOR"
    assert_found(answer, "environment.visible", "fail", "ONEAPI_DEVICE_SELECTOR='level_zero:1'", mend)


@pytest.mark.parametrize(
    ("value", "mend"),
    [("npu", "export VERL_PLATFORM=huawei"), ("cuda", "export VERL_PLATFORM=nvidia"), ("gpu", "unset VERL_PLATFORM")],
)
def test_verls_own_names_of_devices_are_not_taken_for_a_vendor_of_ours(patient: Patient, value: str, mend: str) -> None:
    answer = patient.doctor("--check", "environment.platform", VERL_PLATFORM=value, VERL_USE_EXTERNAL_PLUGINS="none")
    assert_found(answer, "environment.platform", "fail", f"VERL_PLATFORM={value}", mend)
    assert "did you mean 'xpu'" not in answer.data["verl_would_use"]
