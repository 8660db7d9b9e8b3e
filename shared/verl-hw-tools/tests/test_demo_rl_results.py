# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_tools.demo.rl.chart import draw
from verl_hw_tools.demo.rl.failure import explain
from verl_hw_tools.demo.rl.metrics import RlStep, read_rl_steps, trend
from verl_hw_tools.demo.rl.settings import RlSettings
from verl_hw_tools.demo.rl.verdict import RlVerdict, print_summary, write_summary

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
    "device": "adev",
    "parameter_device": "cpu",
    "current_device": "adev:0",
    "card": "card-0",
    "engine": "acme.engines.AcmeEngine",
    "simulator": "acme:2",
}


def step(number: int, reward: float, **changes: float) -> RlStep:
    values = {"lowest": 0.0, "highest": 1.0, "grad_norm": 0.5, "kl": 0.1, "rollout_gap": 1e-7, "rollout_kl": 1e-12}
    values |= {"device_memory": 0.01, "seconds": 2.0, **changes}
    return RlStep(number=number, reward=reward, **values)


FACTS = [FACT, FACT, {**FACT, "card": "card-1"}, {**FACT, "card": "card-1"}]
RISING = [step(number, number / 20) for number in range(1, 21)]


def verdict(**changes: Any) -> RlVerdict:
    good = RlVerdict(
        spec=SPEC,
        settings=RlSettings(algorithm="grpo", steps=20, nodes=1, processes=2, seed=0),
        facts=FACTS,
        steps=RISING,
        seconds=100.0,
        outputs=Path("out"),
        log=Path("out/log"),
        metrics=Path("out/metrics.jsonl"),
        chart=Path("out/reward.png"),
    )
    return dataclasses.replace(good, **changes)


def shown(result: RlVerdict) -> str:
    console = Console(file=io.StringIO(), width=240)
    print_summary(result, console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_a_good_run_passes_and_names_reward_log_and_chart() -> None:
    said = shown(verdict())
    assert verdict().passed
    assert "from 0.050 (step 1) to 1.000 (step 20)" in said
    assert "devices adev:0 on 2 simulated cards" in said
    assert "verl GRPO on Acme [A1]" in said
    assert all(name in said for name in ("out/log", "out/metrics.jsonl", "out/reward.png", "verl-hw accept"))
    assert "NO" not in said


@pytest.mark.parametrize(("steps", "offered"), [(9, False), (10, True)])
def test_the_command_that_is_offered_can_be_typed(steps: int, offered: bool) -> None:
    settings = RlSettings(algorithm="grpo", steps=steps, nodes=1, processes=2, seed=0)
    said = shown(verdict(steps=RISING[:steps], settings=settings, metrics=Path("my runs/metrics.jsonl")))
    command = f"verl-hw accept 'my runs/metrics.jsonl' --steps {steps} --total-steps {steps}"
    assert (command in said) is offered
    assert ("verl-hw accept" in said) is offered  # fewer steps are never judged


def test_a_summary_with_numbers_that_are_not_finite_is_json(tmp_path: Path) -> None:
    steps = [*RISING[:-1], step(20, math.nan, rollout_gap=math.inf)]
    write_summary(verdict(steps=steps), tmp_path / "summary.json")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    content = json.loads((tmp_path / "summary.json").read_text(), parse_constant=refuse)
    assert content["rewards"][-2:] == [0.95, None]
    assert content["largest_probability_difference"] is None


def flat(value: float) -> list[RlStep]:
    return [step(number, value) for number in range(1, 21)]


@pytest.mark.parametrize(
    ("changes", "row"),
    [
        ({"steps": flat(0.5)}, "reward rose"),
        ({"steps": [step(n, 1 - n / 20) for n in range(1, 21)]}, "reward rose"),
        # Rises and collapses.
        ({"steps": [step(n, min(n, 21 - n) / 10) for n in range(1, 21)]}, "reward rose"),
        ({"steps": [*RISING[:-1], step(20, math.nan)]}, "reward rose"),
        ({"steps": [*RISING[:-1], step(20, 1.0, grad_norm=math.nan)]}, "all steps"),
        ({"steps": RISING[:-1]}, "all steps"),
        ({"steps": [step(n, n / 20, rollout_gap=0.01) for n in range(1, 21)]}, "rollout agrees"),
        ({"steps": [step(n, n / 20, rollout_gap=math.nan) for n in range(1, 21)]}, "rollout agrees"),
        # Weights of the step before: hardly a difference in a probability where every token has a small one.
        ({"steps": [step(n, n / 20, rollout_kl=0.1) for n in range(1, 21)]}, "rollout agrees"),
        ({"steps": [step(n, n / 20, rollout_kl=math.nan) for n in range(1, 21)]}, "rollout agrees"),
        ({"steps": [step(n, n / 20, device_memory=0.0) for n in range(1, 21)]}, "on the device"),
        # Two workers on one card, though each calls it its device 0.
        ({"facts": [FACT] * 4}, "on the device"),
        ({"facts": FACTS[:3]}, "on the device"),
        ({"facts": [*FACTS[:3], {**FACTS[3], "platform": "nvidia"}]}, "on the device"),
        ({"facts": [*FACTS[:3], {**FACTS[3], "current_device": "cpu"}]}, "on the device"),
        ({"steps": []}, "all steps"),
    ],
)
def test_a_run_that_lacks_something_fails_in_the_row_that_says_so(changes: dict[str, Any], row: str) -> None:
    result = verdict(**changes)
    assert not result.passed
    line = next(line for line in shown(result).splitlines() if row in line)
    assert "NO" in line


@pytest.mark.parametrize(("strategy", "agrees"), [("fsdp2", False), ("megatron", True)])
def test_megatrons_bfloat16_is_given_more_room(strategy: str, agrees: bool) -> None:
    settings = RlSettings(algorithm="grpo", steps=20, nodes=1, processes=2, seed=0, strategy=strategy)
    result = verdict(
        settings=settings, steps=[step(n, n / 20, rollout_gap=0.012, rollout_kl=3e-5) for n in range(1, 21)]
    )
    assert result.rollout_agrees is agrees
    assert ("1.2e-02 in bfloat16: the weights" in shown(result)) is agrees
    assert not verdict(settings=settings, steps=[step(n, n / 20, rollout_gap=0.2) for n in range(1, 21)]).rollout_agrees


def test_two_steps_are_too_few_for_a_trend_but_not_a_failure() -> None:
    short = RlSettings(algorithm="grpo", steps=2, nodes=1, processes=2, seed=0)
    result = verdict(settings=short, steps=RISING[:2])
    assert result.reward_rose is None
    assert result.passed
    assert "too few steps" in shown(result)


def test_trend_needs_a_rise_over_the_steps_not_in_one_of_them() -> None:
    jump = [step(n, 0.1 + 0.05 * math.sin(9 * n)) for n in range(1, 20)] + [step(20, 0.9)]
    course = trend(jump)
    assert course is not None
    assert course.last > course.first
    assert not course.rose


def test_summary_for_programs(tmp_path: Path) -> None:
    write_summary(verdict(), tmp_path / "summary.json")
    content = json.loads((tmp_path / "summary.json").read_text())
    assert content["passed"] is content["simulated"] is content["reward_rose"] is True
    assert len(content["rewards"]) == 20


def test_verls_log_is_read_with_its_names(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    values = {"critic/rewards/mean": 0.25, "actor/grad_norm": 0.5, "actor/kl_loss": None, "timing_s/step": 3}
    path.write_text(json.dumps({"step": 1, "data": values}) + "\n" + '{"step": 2, "da')
    (found,) = read_rl_steps(path)
    assert (found.number, found.reward, found.grad_norm, found.seconds) == (1, 0.25, 0.5, 3.0)
    assert math.isnan(found.kl)
    assert math.isnan(found.rollout_gap)


def test_the_picture_is_a_png_even_of_one_step(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for steps in (RISING, RISING[:1]):
        draw(steps, "verl GRPO on Acme", "task", tmp_path / "reward.png")
        content = (tmp_path / "reward.png").read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) > 10_000


LOG = """2026-01-01 10:00:00,000	INFO worker.py:2038 -- Started a local Ray instance.
(WorkerDict pid=7) something that a worker printed
Error executing job with overrides: ['a=1']
Traceback (most recent call last):
  File "main_ppo.py", line 9, in run_ppo
    ray.get(runner.run.remote(config))
ray.exceptions.RayTaskError(ValueError): ray::TaskRunnerV1.run() (pid=5, ip=192.0.2.2)
  File "trainer.py", line 3, in step
ValueError: no such prompt
(WorkerDict pid=7) a last word
(pid=8) INFO: one more process
Training Progress:  33%|███▎      | 1/3 [00:22<00:45, 22.54s/it]
"""


def test_a_failure_shows_the_drivers_last_lines_without_what_others_printed(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    failure = explain(tmp_path / "log", 1)
    assert failure.lines[-1] == "ValueError: no such prompt"
    assert not any("WorkerDict" in line or "INFO" in line for line in failure.lines)
    assert str(tmp_path / "log") in str(failure)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("Exception: The current node timed out during startup. This could happen because ...", "busy machine"),
        ("ModuleNotFoundError: No module named 'cachetools'", r"pip install 'verl-hw-tools\[demo\]'"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("ray.exceptions.ActorDiedError: The actor died unexpectedly", "memory"),
    ],
)
def test_a_known_cause_comes_with_what_helps(tmp_path: Path, line: str, remedy: str) -> None:
    (tmp_path / "log").write_text(LOG + line + "\n")
    with pytest.raises(AssertionError, match=remedy):
        raise AssertionError(str(explain(tmp_path / "log", 1)))


def test_a_log_that_was_never_written_is_no_second_error(tmp_path: Path) -> None:
    assert "wrote nothing" in str(explain(tmp_path / "log", -9))
