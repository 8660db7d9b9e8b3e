# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's own detection with our platforms registered: who is chosen, and what is said about doubts."""

from types import SimpleNamespace

import pytest
from acme import spec

from verl_hw_core import SmiTool, Traces, detection, load_report
from verl_hw_core.facts import vendors
from verl_hw_core.platform import table as platform_table
from verl_hw_core.upstream import patches


@pytest.fixture
def machine(tmp_path, monkeypatch, built_in_platforms):
    """A machine that shows only what the test puts there, and verl with its built-in platforms."""
    from verl.plugin.platform import platform_manager

    monkeypatch.setattr(platform_manager.PlatformRegistry, "_platforms", built_in_platforms)
    monkeypatch.setattr(patches, "_replaced", {})
    monkeypatch.setattr(vendors, "_vendors", {})
    monkeypatch.setattr(load_report, "_problems", [])
    monkeypatch.delenv("VERL_PLATFORM", raising=False)
    root, tools = tmp_path / "root", tmp_path / "bin"
    (root / "dev").mkdir(parents=True)
    tools.mkdir()
    monkeypatch.setenv("VERL_HW_PROBE_ROOT", str(root))
    monkeypatch.setenv("VERL_HW_PROBE_CACHE", "0")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    detection.forget()
    yield SimpleNamespace(dev=root / "dev", tools=tools, detect=platform_manager._detect_platform_name)
    detection.forget()


def install(**facts) -> None:
    """Register a vendor as its wheel would."""
    from verl_hw_core.platform import AcceleratorPlatform

    made = spec(**facts)
    platform_table.claim(made, type(f"{made.key}Platform", (AcceleratorPlatform,), {"spec": made}))
    vendors.add(vendors.Vendor(made, "none:none", "none"))


def tool(machine, name: str, script: str) -> None:
    path = machine.tools / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def acme(**changes) -> dict:
    return {"traces": Traces(device_nodes=("/dev/acme[0-9]*",), smi=(SmiTool(command="acme-smi"),)), **changes}


def test_nothing_there_is_verls_own_fallback(machine):
    install(**acme())
    assert machine.detect() == "nvidia"
    assert load_report.problems() == ()


def test_a_migration_shim_does_not_turn_the_chip_into_nvidia(machine, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # noqa: TID251 - what the vendors' shims do
    tool(machine, "nvidia-smi", "exit 0")
    (machine.dev / "acme0").touch()
    install(**acme())
    assert machine.detect() == "acme"


def test_the_runtime_is_not_touched_by_detection(machine, monkeypatch):
    import torch

    def touched(*args):
        raise AssertionError("detection started the runtime")

    names = ("is_available", "device_count", "current_device", "get_device_properties", "_lazy_init")
    monkeypatch.setattr(torch, "acmedev", SimpleNamespace(**dict.fromkeys(names, touched)), raising=False)
    (machine.dev / "acme0").touch()
    install(**acme())
    assert machine.detect() == "acme"


@pytest.mark.parametrize("order", [("acme", "bolt"), ("bolt", "acme")])
def test_two_vendors_give_one_choice_and_one_warning(machine, caplog, order):
    tool(machine, "acme-smi", "exit 0")
    (machine.dev / "bolt0").touch()
    facts = {"acme": acme(), "bolt": acme(key="bolt", traces=Traces(device_nodes=("/dev/bolt[0-9]*",)))}
    for key in order:
        install(**facts[key])
    assert [machine.detect() for _ in range(2)] == ["bolt", "bolt"], "a device node is stronger than a tool"
    (record,) = caplog.records
    assert all(word in record.getMessage() for word in ("acme", "bolt", "VERL_PLATFORM"))


def test_a_failing_tool_is_a_doubt_that_is_said(machine, caplog):
    tool(machine, "acme-smi", "echo driver mismatch; exit 215")
    install(**acme())
    assert machine.detect() == "nvidia"
    (problem,) = load_report.problems()
    assert "cannot tell whether 'acme' is present" in problem.message
    assert "215" in problem.message
    assert "VERL_PLATFORM=acme" in problem.message


def test_a_detection_that_fails_is_said(machine, monkeypatch, tmp_path):
    install(**acme())
    monkeypatch.setenv("VERL_HW_PROBE_ROOT", str(tmp_path / "nowhere"))
    assert machine.detect() == "nvidia"
    assert "ProbeRootError" in load_report.problems()[0].message


def test_the_answer_does_not_depend_on_visibility(machine, monkeypatch):
    (machine.dev / "acme0").touch()
    install(**acme())
    answers = set()
    for mask in (None, "", "0", "2,3", "nonsense"):
        detection.forget()
        if mask is None:
            monkeypatch.delenv("ACME_VISIBLE_DEVICES", raising=False)
        else:
            monkeypatch.setenv("ACME_VISIBLE_DEVICES", mask)
        answers.add(machine.detect())
    assert answers == {"acme"}
