# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of other packages, as docs/doctor.md shows them, and the document itself."""

import importlib.util
import re
from pathlib import Path

import pytest
from doctorkit import Answer, Patient

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "doctor.md"

MORE = """
import os
from verl_hw_tools.doctor import check, ok
from verl_hw_acme.spec import SPEC
@check("acme.raises", why="a check may be wrong")
def raises(facts):
    raise LookupError("no such thing")
@check("acme.others", why="of another vendor", vendors=("zeta",))
def others(facts):
    return ok("must not run")
@check("acme.dies", why="a runtime may be broken")
def dies(facts):
    os._exit(7)
@check("acme.behind", why="it comes after")
def behind(facts):
    return ok("must not run")
"""


def example(language: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    return blocks[0]


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """A machine with the Acme wheel, whose package must not be executed for its checks."""
    patient = Patient.make(tmp_path)
    patient.acme(extension="")
    patient.module("verl_hw_acme/__init__.py", "raise SystemExit('the package was executed')")
    patient.module("verl_hw_acme/checks.py", example("python"))
    group, entry = re.search(r'entry-points\."(.*?)"\]\n(.*?)\n', example("toml")).groups()
    name, _, module = entry.partition(" = ")
    patient.package(
        "verl-hw-acme",
        "1.0",
        requires=["verl-hw-core>=0.1,<0.2"],
        points={"verl.plugins": {"acme": "verl_hw_acme"}, group: {name: module.strip('"')}},
    )
    return patient


def acme(patient: Patient, **environment: str) -> Answer:
    return patient.doctor("--check", "acme", VERL_USE_EXTERNAL_PLUGINS="acme", **environment)


def test_the_example_of_the_document(patient: Patient) -> None:
    missing = acme(patient, ACME_HOME=str(patient.folder))
    assert missing.code == 1
    assert missing["acme.driver"]["mend"] == "apt install acme-driver"
    assert missing["acme.driver"]["title"] == "The driver is new enough"
    assert missing["acme.driver"]["doc"] == "https://acme.example/driver"
    (patient.folder / "driver-version").write_text("4.1\n")
    assert "(4, 1)" in acme(patient, ACME_HOME=str(patient.folder))["acme.driver"]["observed"]
    (patient.folder / "driver-version").write_text("4.2\n")
    good = acme(patient, ACME_HOME=str(patient.folder))
    assert good.code == 0
    assert good["acme.driver"]["status"] == "ok"
    listed = patient.run("doctor", "--list", "--check", "acme")
    assert listed.stdout.split() == ["acme.driver", "The", "driver", "is", "new", "enough"]


def test_what_others_checks_do_wrong_is_theirs(patient: Patient) -> None:
    patient.module("verl_hw_acme/checks.py", MORE)
    answer = acme(patient)
    assert answer.code == 1
    assert answer["acme.raises"]["status"] == answer["acme.dies"]["status"] == "crash"
    assert "LookupError: no such thing" in answer["acme.raises"]["observed"]
    assert "exit code 7" in answer["acme.dies"]["observed"]
    assert answer["acme.behind"]["status"] == "skip"
    assert "acme.others" not in {result["id"] for result in answer.data["results"]}


def test_a_module_that_cannot_be_loaded_is_said(patient: Patient) -> None:
    patient.module("verl_hw_acme/checks.py", "import a_part_that_is_missing\n")
    answer = acme(patient)
    assert answer["acme.load"]["status"] == "fail"
    assert "a_part_that_is_missing" in answer["acme.load"]["observed"]


def test_the_documents_table_is_that_of_the_registry() -> None:
    spec = importlib.util.spec_from_file_location("write_doctor_docs", ROOT / "scripts" / "write_doctor_docs.py")
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    text = DOCUMENT.read_text(encoding="utf-8")
    assert writer.document(text) == text, "run: python3 scripts/write_doctor_docs.py"


def test_the_document_names_every_field_of_the_json(patient: Patient) -> None:
    data = patient.doctor("--check", "system").data
    text = DOCUMENT.read_text(encoding="utf-8")
    for name in {*data, *data["results"][0]}:
        assert f"`{name}`" in text, name
