# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw env`` on whole and broken machines: facts, no secrets, one paste."""

import json
from pathlib import Path

import pytest
from doctorkit import Patient, bare_environment

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient.make(tmp_path)


def facts(patient: Patient, **environment: str) -> dict:
    done = patient.run("env", "--json", **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_facts_of_a_vendors_stack(patient: Patient) -> None:
    patient.acme(extension="")
    patient.package("torch-acme", "2.13.1")
    patient.module("torch_acme-2.13.1.dist-info/top_level.txt", "torch_acme\n")
    patient.file("opt/acme/version.txt", "\nAcme SDK 4.2\n")
    found = facts(patient, VERL_USE_EXTERNAL_PLUGINS="acme", ACME_VISIBLE_DEVICES="0,1", MY_TOKEN="hidden")  # noqa: S106
    assert found["verl_would_use"]["vendor"] == "acme"
    acme = next(vendor for vendor in found["vendors"] if vendor["vendor"] == "acme")
    assert acme["packages"] == {"torch_acme": "torch-acme 2.13.1"}
    assert acme["sdk"] == {"/opt/acme/version.txt": "Acme SDK 4.2"}
    assert acme["evidence"]["device_nodes"] == "present: /dev/acme0 exists"
    assert found["devices"] == {"count": 2, "names": ["Acme 1", "Acme 1"], "ccl": "accl", "ccl_known": True}
    assert {"name": "acme", "package": "verl-hw-acme 1.0", "state": "loaded"} in found["plugins"]
    assert {plugin["state"] for plugin in found["plugins"] if plugin["name"] != "acme"} == {"not loaded"}
    assert found["platforms"]["nvidia"]["class"].endswith("PlatformNVIDIA")
    assert found["torch"]["imported"] == found["torch"]["version_file"] == "2.13.0+acme"
    assert found["environment"]["ACME_VISIBLE_DEVICES"] == "0,1"
    assert "MY_TOKEN" not in found["environment"]
    assert str(patient.folder / "home") not in json.dumps(found)
    text = DOCUMENT.read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in found)


def test_a_broken_stack_is_a_fact(patient: Patient) -> None:
    patient.acme(extension="raise OSError('libaccl.so.1: cannot open shared object file')\n")
    patient.plugin("bad", "import os; os._exit(3)\n")
    found = facts(patient, VERL_USE_EXTERNAL_PLUGINS="bad", VERL_PLATFORM="acme")
    assert "ended itself with exit code 3" in next(one["state"] for one in found["plugins"] if one["name"] == "bad")
    assert any("plugin bad" in problem for problem in found["problems"])
    found = facts(patient, VERL_USE_EXTERNAL_PLUGINS="acme")
    assert any("libaccl.so.1" in problem for problem in found["problems"])


@pytest.mark.parametrize("without", [["torch", "functorch"], ["verl", "torch"]])
def test_without_torch_or_verl(patient: Patient, tmp_path: Path, without: list[str]) -> None:
    found = facts(patient.with_real_stack(bare_environment(tmp_path / "venv", without)))
    assert found["torch"]["metadata"] is found["torch"]["imported"] is None
    assert found["platforms"] == {}
    assert len(found["vendors"]) == 4


def test_markdown_holds_whole_tables(patient: Patient) -> None:
    patient.acme(extension="")
    text = patient.run("env", VERL_USE_EXTERNAL_PLUGINS="acme", VERL_PLATFORM="a|b<c").stdout
    assert text.startswith("### Environment")
    assert "| VERL_PLATFORM | a\\|b&lt;c |" in text
    for line in text.splitlines():
        assert not line.startswith("|") or line.replace("\\|", "").count("|") == 3, line
