# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the doctor tells people to type: it can be typed, and it mends."""

import os
from pathlib import Path
from typing import Any

import pytest

from verl_hw_core import processes
from verl_hw_tools.doctor import bug_report
from verl_hw_tools.doctor.checks import packages, ray, system
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.mends import mend_of_import
from verl_hw_tools.doctor.model import Finding
from verl_hw_tools.doctor.stages import ChildReport, Stage


@pytest.mark.parametrize(
    ("module", "mend"),
    [
        ("PIL", "pip install --no-deps pillow   # what provides PIL"),
        ("hydra", "pip install --no-deps hydra-core   # what provides hydra"),
        ("rich.no_such_part", "pip install --no-deps --upgrade rich   # what provides rich.no_such_part"),
        ("verl_hw_acme", "pip install --force-reinstall --no-deps verl-hw-acme"),
        ("verl.plugin_of_another_version", "'verl>=0.9'"),
    ],
)
def test_a_missing_module(module: str, mend: str) -> None:
    assert mend in (mend_of_import(f"ModuleNotFoundError: No module named '{module}'") or "")


@pytest.mark.parametrize("module", ["torch", "torch_mlu", "torch_gcu.x", "vllm", "triton", "flash_attn.bert_padding"])
def test_what_the_vendor_brings_is_not_taken_from_an_index(module: str) -> None:
    package = module.partition(".")[0]
    mend = mend_of_import(f"ModuleNotFoundError: No module named '{module}'")
    assert (
        mend == f"use the vendor's image, or install the vendor's own {package} with pip install --no-deps <its wheel>"
    )


def test_a_library_of_another_build() -> None:
    error = "ImportError: /opt/torch_acme/_C.so: undefined symbol: _ZN3c106detail"
    assert "the torch that this library was built for" in (mend_of_import(error) or "")


def node(versions: dict[str, str], **variables: str) -> dict[str, Any]:
    return {
        "vendor": None,
        "versions": {"python": "3.11.7", **versions},
        "variables": {"VERL_PLATFORM": "", **variables},
    }


def agreement(here: dict[str, Any], there: dict[str, Any]) -> Finding:
    stages = {"here": Stage(name="here", data=here), "workers": Stage(name="workers", data={"n" * 40: there})}
    return ray.agreement(Facts(ray=ChildReport(stages=stages)))


def test_an_error_of_a_worker_is_no_variable() -> None:
    """Ray's own errors are full of "="."""
    error = "RayTaskError: ray::node_facts() (pid=17, ip=10.0.0.2): ModuleNotFoundError: No module named 'verl_hw_core'"
    found = agreement(node({}), {"error": error})
    assert "No module named 'verl_hw_core'" in found.observed
    assert found.mend == "install the same versions on every node, and start Ray again"


def test_a_wheel_that_the_driver_alone_lacks() -> None:
    found = agreement(node({}), node({"verl-hw-acme": "0.1.0"}))
    assert "verl-hw-acme 0.1.0 there, not installed here" in found.observed
    assert found.mend.startswith("install the same versions")


@pytest.mark.parametrize(
    ("here", "there", "mend"),
    [
        ("acme", "", "export VERL_PLATFORM=acme   # before 'ray start'"),
        ("", "zeta", "unset VERL_PLATFORM   # before 'ray start'"),
        ("a b", "zeta", "export VERL_PLATFORM='a b'   # before 'ray start'"),
    ],
)
def test_a_variable_is_set_with_its_value(here: str, there: str, mend: str) -> None:
    assert agreement(node({}, VERL_PLATFORM=here), node({}, VERL_PLATFORM=there)).mend.startswith(mend)


def test_a_stub_is_moved_and_not_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It may be a checkout on PYTHONPATH."""
    folder = tmp_path / "with a blank" / "stubs_of_a_port"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setattr(packages, "_OFTEN_FAKED", {folder.name: ("stubs-of-a-port",)})
    assert packages.faked(Facts()).mend == f"mv '{folder}' '{folder}'.aside"


def test_a_machine_that_does_not_tell_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without /proc, in a chroot."""
    monkeypatch.setattr(os, "sysconf", lambda _: -1)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "max")
    assert system.memory_bytes() is None
    assert system.shm(Facts()).status.value in ("ok", "warn", "skip")
    assert bug_report._system()["memory"] == "unknown"


def test_no_process_is_found_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda _: False)
    monkeypatch.setattr(Path, "iterdir", lambda _: (_ for _ in ()).throw(FileNotFoundError("/proc")))
    assert processes.marked_processes("mark") == []
