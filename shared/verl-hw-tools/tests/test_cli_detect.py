# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from machine_speed import scaled
from typer.testing import CliRunner

from verl_hw_core.facts.hardware import HardwareSpec, Traces
from verl_hw_tools import choice
from verl_hw_tools.choice import choose
from verl_hw_tools.cli.app import app
from verl_hw_tools.installed import InstalledWheel, installed_wheels

VARIABLES = ("VERL_PLATFORM", "VERL_USE_EXTERNAL_PLUGINS", "VERL_HW_SIM")


def wheel(key: str, node: str) -> InstalledWheel:
    spec = HardwareSpec(
        key=key,
        display_name=key,
        distribution=f"verl-hw-{key}",
        device_name=f"{key}dev",
        aliases=(f"{key}x",),
        ccl_backend="ccl",
        visible_devices_envvar="DEVICES",
        ray_resources=("GPU",),
        traces=Traces(device_nodes=(f"/dev/{node}",)),
    )
    return InstalledWheel(name=key, module=key, distribution=f"verl-hw-{key}", version="1", spec=spec)


ACME, ZETA = WHEELS = (wheel("acme", "acme0"), wheel("zeta", "zeta0"))


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without hardware, in a process without choices."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VERL_HW_PROBE_ROOT", str(tmp_path))
    (tmp_path / "dev").mkdir()
    return tmp_path


def detect(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["detect", *arguments], env={"COLUMNS": "300"})
    assert result.exit_code == 0, result.output
    return result.stdout


def detect_data() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(detect("--json"))
    return content


def test_nothing_present_is_an_answer_and_no_failure() -> None:
    content = detect_data()
    assert content["schema"] == 1
    assert content["chosen"] is None
    assert content["because"]
    assert [item["distribution"] for item in content["vendors"]] == [item.distribution for item in installed_wheels()]


def test_people_see_every_wheel_with_its_evidence_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    import verl_hw_tools.installed as installed

    broken = InstalledWheel(name="bad", module="bad", distribution="verl-hw-bad", version="2", spec=None, problem="[x")
    monkeypatch.setattr(installed, "installed_wheels", lambda: (*WHEELS, broken))
    text = detect()
    assert "verl-hw-acme 1  acme: absent" in text
    assert "device nodes  absent  no /dev/acme0" in text
    assert "verl-hw-bad 2  broken: [x" in text
    assert "verl would use: none of these vendors" in text
    monkeypatch.setattr(installed, "installed_wheels", lambda: ())
    assert "No vendor wheel is installed" in detect()


def test_what_is_present_is_chosen_for_its_strongest_evidence(machine: Path) -> None:
    (machine / "dev" / "zeta0").touch()
    chosen = choose(WHEELS)
    assert chosen.vendor == "zeta"
    assert "/dev/zeta0" in chosen.because


def test_two_present_vendors_are_both_named(machine: Path) -> None:
    for name in ("acme0", "zeta0"):
        (machine / "dev" / name).touch()
    chosen = choose(WHEELS)
    assert chosen.vendor == "acme"
    assert "zeta" in chosen.because
    assert "VERL_PLATFORM" in chosen.because


@pytest.mark.parametrize(
    ("value", "vendor", "said"),
    [
        (" ACMEX ", "acme", "which means acme"),
        ("zeta", "zeta", "VERL_PLATFORM=zeta"),
        ("acmy", None, "did you mean 'acme'?"),
    ],
)
def test_the_variable_decides_and_its_alias_is_resolved(
    machine: Path, monkeypatch: pytest.MonkeyPatch, value: str, vendor: str | None, said: str
) -> None:
    (machine / "dev" / "zeta0").touch()
    monkeypatch.setenv("VERL_PLATFORM", value)
    chosen = choose(WHEELS)
    assert chosen.vendor == vendor
    assert said in chosen.because


def test_a_wheel_that_verl_does_not_load_is_not_chosen(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "dev" / "zeta0").touch()
    monkeypatch.setenv("VERL_USE_EXTERNAL_PLUGINS", "acme, other")
    assert choose(WHEELS).vendor is None
    monkeypatch.setenv("VERL_PLATFORM", "zeta")
    assert choose(WHEELS).vendor is None
    monkeypatch.delenv("VERL_PLATFORM")
    monkeypatch.setenv("VERL_USE_EXTERNAL_PLUGINS", "none")
    assert "VERL_USE_EXTERNAL_PLUGINS=none" in choose(WHEELS).because


def test_a_simulated_device_is_what_processes_with_torch_will_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERL_HW_SIM", "zeta:2")
    monkeypatch.setattr(choice, "find_spec", lambda name: object())
    assert choose(WHEELS).vendor == "zeta"
    assert "processes that import torch see a simulated machine" in choose(WHEELS).because
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    assert choose(WHEELS).vendor is None


def test_a_misspelt_simulated_device_is_said_with_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERL_HW_SIM", "zteta:2")
    monkeypatch.setattr(choice, "find_spec", lambda name: object())
    assert choose(WHEELS).vendor is None
    assert "did you mean 'zeta'?" in choose(WHEELS).because


def test_variables_that_matter_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERL_PLATFORM", "acme")
    assert detect_data()["variables"]["VERL_PLATFORM"] == "acme"
    assert "VERL_PLATFORM=acme is set" in detect()


def test_it_needs_no_torch_and_imports_none() -> None:
    code = (
        "import sys\nsys.modules['torch'] = None\nfrom verl_hw_tools.cli import main\n"
        "sys.argv = ['verl-hw', 'detect', '--json']\nmain()\n"
    )
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, timeout=scaled(60), check=True).stdout
    assert json.loads(out)["schema"] == 1
