# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from machine_speed import scaled

from verl_hw_core.facts.run_facts import RUN_FACTS_ENV, device_of, read_facts, record_engine


class Parameter:
    device = "mlu:1"


class Module:
    def parameters(self):
        return iter([Parameter()])


class Engine:
    engine_config = SimpleNamespace(strategy="fsdp2")

    def __init__(self, module=None):
        self.module = module or Module()


def test_nothing_is_written_unless_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RUN_FACTS_ENV, raising=False)
    monkeypatch.chdir(tmp_path)
    record_engine(Engine())
    assert list(tmp_path.iterdir()) == []


def test_one_line_per_engine_sorted_by_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "facts.jsonl"
    monkeypatch.setenv(RUN_FACTS_ENV, str(path))
    monkeypatch.setenv("VERL_HW_SIM", "cambricon:2")
    platform = SimpleNamespace(
        vendor_name="cambricon",
        device_name="mlu",
        communication_backend_name=lambda: "cncl",
        current_device=lambda: 1,
        get_device_uuid=lambda device: f"card-{device}",
    )
    monkeypatch.setitem(sys.modules, "verl.plugin.platform", SimpleNamespace(get_platform=lambda: platform))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.13.0"))
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        record_engine(Engine())
    first, second = read_facts(path)
    assert (first["rank"], second["rank"]) == (0, 1)
    expected = {
        "platform": "cambricon",
        "device": "mlu",
        "parameter_device": "mlu:1",
        "current_device": "mlu:1",
        "card": "card-1",
        "ccl_backend": "cncl",
        "strategy": "fsdp2",
        "torch": "2.13.0",
        "simulator": "cambricon:2",
    }
    assert {name: first[name] for name in expected} == expected
    assert first["engine"].endswith(".Engine")


def test_a_megatron_engine_keeps_its_module_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN_FACTS_ENV, str(tmp_path / "facts"))
    for module in ("verl.plugin.platform", "verl.plugin.platform.platform_manager"):
        monkeypatch.delitem(sys.modules, module, raising=False)  # of another test's verl
    record_engine(Engine(module=[Module()]))
    assert read_facts(tmp_path / "facts")[0]["parameter_device"] == "mlu:1"


def test_an_engine_whose_parameters_wait_in_host_memory_is_where_its_process_computes() -> None:
    fact = {"device": "mlu", "parameter_device": "cpu", "current_device": "mlu:1"}
    assert device_of(fact) == "mlu:1"
    assert device_of({**fact, "parameter_device": "mlu:0"}) == "mlu:0"
    assert device_of({"device": "cpu", "parameter_device": "cpu", "current_device": "cpu"}) == "cpu"
    assert device_of({"parameter_device": "cpu"}) == "cpu"


def test_an_unfinished_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "facts"
    assert read_facts(path) == []
    path.write_text(json.dumps({"rank": 0}) + '\n{"ra')
    assert read_facts(path) == [{"rank": 0}]


def test_the_hook_imports_nothing_heavy() -> None:
    heavy = ("torch", "verl", "rich", "wrapt")
    code = f"import sys, verl_hw_core.facts.run_facts; print([n for n in {heavy} if n in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=scaled(60), check=True
    ).stdout
    assert out.strip() == "[]"
