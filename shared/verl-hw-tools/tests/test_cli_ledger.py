# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw ledger`` shows every row and whether it fits what is installed."""

import json
from dataclasses import replace
from importlib import metadata

from typer.testing import CliRunner

from verl_hw_core.upstream import LEDGER
from verl_hw_core.upstream.installed_state import state
from verl_hw_core.upstream.patches import declared
from verl_hw_tools.cli.app import app


def test_every_row_is_shown():
    output = CliRunner().invoke(app, ["ledger"], env={"COLUMNS": "200"}).output
    assert all(row.id in output for row in LEDGER)


def test_json_holds_the_rows_and_the_installed_versions():
    answer = json.loads(CliRunner().invoke(app, ["ledger", "--json"]).stdout)
    assert answer["schema"] == 1
    assert [row["id"] for row in answer["rows"]] == [row.id for row in LEDGER]
    assert [row["targets"] for row in answer["rows"]] == [list(declared(row.id)) for row in LEDGER]
    (patches,) = (row for row in answer["rows"] if row["id"] == "model-patches")
    assert "transformers.models.qwen3.modeling_qwen3:Qwen3RMSNorm.forward" in patches["targets"]
    assert [row["reads"] for row in answer["rows"]] == [list(row.reads) for row in LEDGER]
    assert answer["rows"][0]["target"] == answer["rows"][0]["targets"][0]
    assert answer["rows"][0]["versions"] == "verl>=0.9,<0.11"
    assert all(
        row["installed"].startswith(("verl 0.", "torch 2.")) or " " in row["installed"] for row in answer["rows"]
    )


def test_a_version_that_nobody_tried_is_said(monkeypatch):
    row = replace(LEDGER[0], targets=("verl.plugin:name",), reads=())
    monkeypatch.setattr(metadata, "version", lambda name: "0.12.0")
    assert state(row) == "verl 0.12.0: not tried, the row was read in verl>=0.9,<0.11"


def test_a_vendors_build_counts_as_its_version(monkeypatch):
    row = replace(LEDGER[0], targets=("torch.nested:name",), reads=())
    monkeypatch.setattr(metadata, "version", lambda name: "2.8.0+mlu1.29")
    assert state(row) == "torch 2.8.0+mlu1.29"
