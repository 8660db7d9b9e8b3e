# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw demo`` as a user starts it: verl's own SFT trainer on simulated devices, and every way to stop it."""

import json
import os
import signal
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from demokit import Demo, Demos, demos_below

ENGINES = {
    "cambricon": ("CambriconFSDPEngineWithLMHead", "mlu"),
    "enflame": ("EnflameFSDPEngineWithLMHead", "gcu"),
    "intel": ("IntelFSDPEngineWithLMHead", "xpu"),
    "metax": ("MetaxFSDPEngineWithLMHead", "cuda"),
}
# What people have set who come from another launcher or another device.
ELSEWHERE = {
    "RANK": "3",
    "WORLD_SIZE": "8",
    "MASTER_ADDR": "192.0.2.1",
    "PET_NNODES": "4",
    "TORCHELASTIC_RUN_ID": "x",
    "VERL_PLATFORM": "nothing",
    "VERL_HW_SIM": "metax:1",
    "VERL_HW_PROBE_ROOT": "/nonexistent",
    "VERL_USE_EXTERNAL_PLUGINS": "none",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    "MLU_VISIBLE_DEVICES": "",
    "COLUMNS": "40",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("verl_hw_sim") is None, reason="needs verl-hw-sim"),
]


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[Demos]:
    with demos_below(tmp_path) as started:
        yield started


def rank_pid(demo: Demo, rank: int) -> int:
    lines = (demo.output / "whole-run" / "facts.jsonl").read_text(encoding="utf-8").splitlines()
    return next(fact["pid"] for fact in map(json.loads, lines) if fact["rank"] == rank)


def assert_shows_everything(demo: Demo, vendor: str, steps: int, processes: int, strategy: str) -> None:
    engine, device = ENGINES[vendor]
    assert demo.wait() == 0, demo.said
    assert demo.left() == []
    said = demo.said
    assert f"platform {vendor}, engine {engine} ({strategy})" in said
    assert said.count("  equal\n") == steps - steps // 2
    for line in (*(f"rank {rank} on simulated device {device}:{rank}" for rank in range(processes)), "NO", "DIFFERENT"):
        assert said.count(line) == (2 if line.startswith("rank") else 0), line
    assert "The device was simulated" in said
    summary = json.loads((demo.output / "summary.json").read_text(encoding="utf-8"))
    assert [summary[name] for name in ("passed", "on_device", "loss_fell", "resume_exact", "simulated")] == [True] * 5
    assert len(summary["losses"]) == steps
    assert len(summary["facts"]) == 2 * processes
    assert {fact["platform"] for fact in summary["facts"]} == {vendor}
    assert {fact["engine"].rpartition(".")[2] for fact in summary["facts"]} == {engine}
    assert {fact["parameter_device"] for fact in summary["facts"]} == {f"{device}:{rank}" for rank in range(processes)}


@pytest.mark.ci
def test_two_processes_with_fsdp2_learn_save_and_resume_exactly(demos: Demos) -> None:
    demo = demos.start("--vendor", "cambricon", "--steps", "10")
    assert_shows_everything(demo, "cambricon", steps=10, processes=2, strategy="fsdp2")
    assert {path.name for path in demo.output.iterdir()} == {
        ".verl-hw-demo.json",
        "simulator.log",
        "summary.json",
        "whole-run",
        "resumed-run",
    }


@pytest.mark.parametrize(
    ("vendor", "processes", "strategy", "environment"),
    [
        ("cambricon", 2, "fsdp", ELSEWHERE),
        ("enflame", 3, "fsdp2", {}),
        ("intel", 1, "fsdp", {}),
        ("intel", 2, "fsdp2", {}),
        ("metax", 2, "fsdp2", {}),
    ],
)
def test_other_vendors_strategies_and_surroundings(
    demos: Demos, vendor: str, processes: int, strategy: str, environment: dict[str, str]
) -> None:
    arguments = ["--vendor", vendor, "--steps", "4", "--nproc", str(processes), "--strategy", strategy, "--seed", "3"]
    demo = demos.start(*arguments, **environment)
    demo.wait()
    if "works only with a torch built without" in demo.said:
        assert demo.process.returncode == 2
        assert demo.said.count("\nverl-hw: ") == 1
        assert "Traceback" not in demo.said
        pytest.skip(f"this torch cannot host a simulated {vendor}")
    assert_shows_everything(demo, vendor, steps=4, processes=processes, strategy=strategy)


def assert_ended(demo: Demo, number: signal.Signals) -> None:
    assert demo.wait(30) == 128 + number
    assert demo.left() == []
    said = demo.said
    assert said.endswith(f"verl-hw: stopped by {number.name}; nothing is left running\n")
    assert said.count("verl-hw: ") == 1
    assert "Traceback" not in said


def test_ctrl_c_while_training_ends_every_process(demos: Demos) -> None:
    demo = demos.start("--vendor", "cambricon", "--steps", "300")
    demo.wait_for("step   1")
    # A terminal sends it to the whole group, and people press it again.
    os.killpg(demo.process.pid, signal.SIGINT)
    time.sleep(0.2)
    if demo.process.poll() is None:
        os.killpg(demo.process.pid, signal.SIGINT)
    assert_ended(demo, signal.SIGINT)


def test_a_termination_request_while_compiling_ends_the_compiler(demos: Demos, tmp_path: Path) -> None:
    demo = demos.start("--vendor", "cambricon", VERL_HW_SIM_CACHE=str(tmp_path / "cache"))
    demo.wait_for("compiling", demo.output / "simulator.log")
    time.sleep(1.0)
    demo.process.send_signal(signal.SIGTERM)
    assert_ended(demo, signal.SIGTERM)


def test_ctrl_c_while_resuming_ends_every_process(demos: Demos) -> None:
    demo = demos.start("--vendor", "cambricon", "--steps", "4")
    demo.wait_for("Resuming")
    time.sleep(3.0)
    demo.process.send_signal(signal.SIGINT)
    assert_ended(demo, signal.SIGINT)


def test_a_killed_rank_is_named_and_takes_the_others_along(demos: Demos) -> None:
    demo = demos.start("--vendor", "cambricon", "--steps", "300")
    demo.wait_for("step   1")
    os.kill(rank_pid(demo, 1), signal.SIGKILL)
    assert demo.wait(60) == 1
    assert demo.left() == []
    assert "verl-hw: training failed: rank 1 (exit code -9, SIGKILL" in demo.said
    log = Path(demo.said.rpartition("full log: ")[2].strip())
    assert log.is_file()


@pytest.mark.ci
def test_without_a_compiler_the_error_says_what_to_install(demos: Demos, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    demo = demos.start(
        *("--vendor", "cambricon"), PATH=str(tmp_path / "bin"), CXX="", VERL_HW_SIM_CACHE=str(tmp_path / "cache")
    )
    assert demo.wait(120) == 2
    assert "there is no C++ compiler" in demo.said
    assert "apt-get install g++" in demo.said
    assert "Traceback" not in demo.said
