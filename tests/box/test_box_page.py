# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The support page takes results files that were measured, and no others."""

import dataclasses
import importlib.util
from types import ModuleType

import pytest
from documents import ROOT

from boxlib import record
from boxlib.record import Record, RecordError, Step

RECORD = Record(
    vendor="metax",
    device="MXC550",
    device_type="cuda",
    devices=1,
    vendors_own=True,
    kind="measured",
    date="2026-12-01T10:00:00+00:00",
    revision="abc",
    versions={"python": "3.10", "torch": "2.10.0+metax3.8"},
    seconds=311.5,
    steps=(
        Step(name="parity", title="t", outcome="passed", seconds=30.0),
        Step(name="check", title="t", outcome="failed", reason="1 fail | of 240\nmore", seconds=60.0),
        Step(name="parity-ranks", title="t", outcome="not run", reason="one device"),
    ),
)


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_vendor_docs", ROOT / "scripts" / "write_vendor_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages(writer) -> dict[str, str]:
    return {path.name: writer.document(path, spec) for path, spec in writer.documents().items() if spec is None}


def test_a_measured_run_becomes_a_row_and_the_vendors_status(writer, tmp_path, monkeypatch):
    RECORD.write(tmp_path / "metax-mxc550.json")
    monkeypatch.setattr(writer, "MEASURED", tmp_path)
    support = pages(writer)["support.md"]
    (row,) = [line for line in support.splitlines() if line.startswith("| measured on")]
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    assert cells == [
        "measured on MXC550",
        "`verl-hw-metax`",
        "2026-12-01, 1 visible, 312 s",
        "python 3.10, torch 2.10.0+metax3.8",
        "`parity`",
        "`check`: 1 fail / of 240",
        "`parity-ranks`: one device",
    ]
    assert "Nothing on hardware" not in support
    rows = [line for line in pages(writer)["index.md"].splitlines() if "`verl-hw-" in line and "user_guide" in line]
    assert ["measured on MXC550" in line for line in rows] == ["`verl-hw-metax`" in line for line in rows]


def test_a_wheel_on_another_vendors_device_says_nothing_of_the_vendors_own(writer, tmp_path, monkeypatch):
    dataclasses.replace(RECORD, device="NVIDIA H200", vendors_own=False).write(tmp_path / "metax-h200.json")
    monkeypatch.setattr(writer, "MEASURED", tmp_path)
    found = pages(writer)
    assert "| measured on NVIDIA H200 | `verl-hw-metax`, on another vendor's device |" in found["support.md"]
    assert "H200" not in found["index.md"]


def test_a_simulated_run_is_refused(writer, tmp_path, monkeypatch):
    dataclasses.replace(RECORD, kind="simulated").write(tmp_path / "one.json")
    monkeypatch.setattr(writer, "MEASURED", tmp_path)
    with pytest.raises(RecordError, match=r"one\.json: simulated"):
        pages(writer)


def test_without_results_nothing_is_said_to_be_measured(writer, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MEASURED", tmp_path)
    assert "**Nothing on hardware.**" in pages(writer)["support.md"]
    assert "measured on M" not in pages(writer)["index.md"]


def test_a_record_is_read_as_it_was_written(tmp_path):
    RECORD.write(tmp_path / "one.json")
    assert record.read(tmp_path / "one.json") == RECORD
    assert not RECORD.passed
    only_skipped = dataclasses.replace(RECORD, steps=RECORD.steps[2:])
    assert not only_skipped.passed
    assert dataclasses.replace(RECORD, steps=(RECORD.steps[0], RECORD.steps[2])).passed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"schema": 1', '"schema": 2'),
        ('"kind": "measured"', '"kind": "believed"'),
        ('"outcome": "passed"', '"outcome": "fine"'),
        ('"reason": "one device"', '"reason": ""'),
        ('"vendor"', '"seller"'),
        ("{", "["),
    ],
)
def test_a_file_that_no_run_wrote_is_refused_by_name(tmp_path, old, new):
    RECORD.write(tmp_path / "one.json")
    (tmp_path / "one.json").write_text((tmp_path / "one.json").read_text().replace(old, new))
    with pytest.raises(RecordError, match=r"one\.json"):
        record.read(tmp_path / "one.json")
