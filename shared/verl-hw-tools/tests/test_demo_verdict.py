# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import io
import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_tools.demo.metrics import Comparison, Step
from verl_hw_tools.demo.progress import LaunchView, describe_step
from verl_hw_tools.demo.sft_config import SftSettings
from verl_hw_tools.demo.table import sparkline
from verl_hw_tools.demo.verdict import Verdict, print_summary, write_summary

SPEC = HardwareSpec(
    key="acme",
    display_name="Acme [A1]",
    distribution="verl-hw-acme",
    device_name="adev",
    ccl_backend="accl",
    visible_devices_envvar="ACME_DEVICES",
    ray_resources=("ACME",),
)
FACT = {
    "platform": "acme",
    "parameter_device": "adev:0",
    "engine": "acme.engines.AcmeEngine",
    "simulator": "acme:2",
    "rank": 0,
    "strategy": "fsdp2",
    "ccl_backend": "accl",
    "torch": "2.13",
}
STEPS = [Step(number=number, loss=5.0 - number, grad_norm=1.0) for number in (1, 2, 3, 4)]


def verdict(**changes: Any) -> Verdict:
    good = Verdict(
        spec=SPEC,
        settings=SftSettings(steps=4, processes=2, strategy="fsdp2", seed=0),
        facts=[FACT] * 4,
        whole=STEPS,
        comparison=Comparison((3, 4), ()),
        seconds=70.0,
        outputs=Path("out"),
    )
    return dataclasses.replace(good, **changes)


def shown(result: Verdict, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_summary(result, console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_a_good_run_passes_and_says_that_it_was_simulated() -> None:
    assert verdict().passed
    text = shown(verdict())
    assert "from 4.0000 to 1.0000 in 4 steps" in text
    assert "steps 3 to 4 replayed" in text
    assert "simulated" in text
    assert "Acme [A1]" in text
    assert "NO" not in text


def test_a_narrow_terminal_shows_everything_and_no_frame() -> None:
    text = shown(verdict(), width=40)
    assert not set(text) & set("│┌└")
    assert "AcmeEngine" in text
    assert "digit for digit" in " ".join(text.split())


@pytest.mark.parametrize(
    "changes",
    [
        {"whole": STEPS[::-1]},
        {"whole": []},
        {"comparison": Comparison((3, 4), ("step 4: loss 1.0 became 1.5 after the resume",))},
        {"comparison": Comparison((), ())},
        {"facts": []},
        {"facts": [FACT] * 3},
        {"facts": [FACT] * 3 + [{**FACT, "parameter_device": "cpu"}]},
        {"facts": [FACT] * 3 + [{**FACT, "platform": "nvidia"}]},
    ],
)
def test_anything_less_fails_and_is_visible(changes: dict[str, Any]) -> None:
    result = verdict(**changes)
    assert not result.passed
    assert "NO" in shown(result)


def test_differences_are_printed() -> None:
    assert "step 4: loss 1.0 became" in shown(verdict(comparison=Comparison((4,), ("step 4: loss 1.0 became 1.5",))))


def test_summary_for_programs(tmp_path: Path) -> None:
    write_summary(verdict(), tmp_path / "summary.json")
    content = json.loads((tmp_path / "summary.json").read_text())
    assert content["passed"] is content["simulated"] is content["resume_exact"] is True
    assert content["losses"] == [4.0, 3.0, 2.0, 1.0]


def test_a_summary_of_losses_that_are_no_numbers_is_json_all_the_same(tmp_path: Path) -> None:
    whole = [dataclasses.replace(step, loss=math.nan) for step in STEPS]
    write_summary(verdict(whole=whole), tmp_path / "summary.json")
    assert json.loads((tmp_path / "summary.json").read_text(), parse_constant=pytest.fail)["losses"] == [None] * 4


def test_sparkline() -> None:
    assert sparkline([3.0, 2.0, 1.0]) == "█▅▁"
    assert sparkline([1.0, 1.0]) == "▁▁"
    assert len(sparkline([float(number) for number in range(300)])) <= 40


def test_view_names_the_stack_once_and_marks_replayed_steps() -> None:
    console = Console(file=io.StringIO(), width=60)
    other = dataclasses.replace(STEPS[3], loss=9.0)
    describe = partial(describe_step, earlier={step.number: step for step in STEPS})
    with LaunchView(
        console, "Resuming", first=3, last=4, engines=2, describe=describe, starting="starting 2 processes"
    ) as view:
        view.update([FACT], [])
        view.update([FACT, {**FACT, "rank": 1, "parameter_device": "adev:1"}], [STEPS[2]])
        view.update([FACT, FACT], [STEPS[2], other])
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines == [
        "Resuming",
        "  platform acme, engine AcmeEngine (fsdp2), collectives accl, torch 2.13",
        "  rank 0 on simulated device adev:0",
        "  rank 1 on simulated device adev:1",
        "  step 3  loss 2.0000  grad norm 1.0000  equal",
        "  step 4  loss 9.0000  grad norm 1.0000  DIFFERENT",
    ]
