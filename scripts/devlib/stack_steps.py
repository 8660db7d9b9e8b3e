# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of ``dev.py stack NAME test``: each a bounded selection of the tests, or a command as a user types it."""

import os
import re
import signal
import subprocess
import time
import uuid
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from devlib.stack_record import StepResult
from devlib.stacks import ROOT, Stack

_MARK = "VERL_HW_STACK_STEP"
_LONGEST_REASON = 300


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that is tried on a stack; ``{vendor}`` in its words is the simulated vendor, or else the wheel's.

    Attributes:
        name: Name in the record.
        about: What it shows.
        seconds: Limit on a quiet machine, several times what it takes there.
        tests: Files of tests, relative to the repository.
        chosen: pytest's expression that chooses among them; empty: all.
        command: Command of the environment, where it is no test.
        device: Whether it needs the simulated device.
        needs: Package without which it is left out; empty: none.
    """

    name: str
    about: str
    seconds: float
    tests: tuple[str, ...] = ()
    chosen: str = ""
    command: tuple[str, ...] = ()
    device: bool = True
    needs: str = ""


_CORE = ("shared/verl-hw-core/tests", "packages/verl-hw-{vendor}/tests")
STEPS = (
    Step(name="unit", about="core's unit tests", seconds=900, tests=_CORE, device=False),
    Step(
        name="wheels",
        about="a wheel alone, and what import verl leaves behind with all of them",
        seconds=600,
        tests=("tests/verl_compat/test_import.py", "tests/wheels/test_alone.py"),
        chosen="(test_import or {vendor}) and not imported_first",
        device=False,
    ),
    Step(
        name="simulator",
        about="the simulated device itself, and the one that has a name in torch (xpu)",
        seconds=900,
        tests=("shared/verl-hw-sim/tests/test_sim_devices.py",),
        chosen="{vendor} or intel",
    ),
    Step(
        name="parity",
        about="FSDP and FSDP2 engines against the CPU",
        seconds=900,
        tests=("tests/conformance/test_engine_parity.py",),
        chosen="{vendor}",
    ),
    Step(
        name="sft",
        about="SFT with an exact resume",
        seconds=600,
        command=("verl-hw", "demo", "--vendor", "{vendor}", "--steps", "6", "--output", "{output}"),
    ),
    Step(
        name="grpo",
        about="three steps of GRPO on Ray",
        seconds=900,
        command=("verl-hw", "demo", "grpo", "--vendor", "{vendor}", "--steps", "3", "--output", "{output}"),
    ),
    Step(
        name="weight-sync",
        about="weights to rollout workers",
        seconds=600,
        tests=("tests/conformance/test_weight_sync.py",),
        chosen="test_other_libraries and {vendor} and not gloo",
    ),
    Step(
        name="ray",
        about="each Ray worker on its own device",
        seconds=900,
        tests=("tests/end_to_end/test_ray_workers.py",),
        chosen="each_form and {vendor}",
    ),
    Step(
        name="check",
        about="verl-hw check",
        seconds=900,
        command=("verl-hw", "check", "--vendor", "{vendor}", "--junit", "{report}"),
    ),
    Step(
        name="megatron",
        about="Megatron engine against transformers",
        seconds=900,
        tests=("tests/conformance/test_megatron_parity.py",),
        chosen="test_loss_and_gradient_norm_are_those_of_transformers and fp32",
        needs="megatron-core",
    ),
)


def run_step(step: Step, stack: Stack, folder: Path, env: Mapping[str, str], factor: float) -> StepResult | None:
    """Run one step in a stack's environment.

    Args:
        step: What to run.
        stack: Stack that is tried.
        folder: Folder for its log and reports.
        env: Environment variables of the stack's environment.
        factor: How many times slower than a quiet machine this one is; limits are multiplied by it.

    Returns:
        The result; None where the step is not meant for this stack.
    """
    if step.needs and stack.version(step.needs) is None:
        return None
    if step.device and stack.simulates is None:
        return StepResult(name=step.name, outcome="skipped", reason=str(stack.not_simulated))
    report, log = folder / f"{step.name}.xml", folder / f"{step.name}.log"
    report.unlink(missing_ok=True)
    names = {"vendor": stack.simulates or stack.vendor, "report": str(report), "output": str(folder / step.name)}
    words = [word.format(**names) for word in step.command or _pytest(step, report)]
    devices = {"VERL_HW_SIM": f"{stack.simulates}:2"} if step.name == "check" else {}
    begun = time.monotonic()
    status = _bounded(words, {**env, **devices}, log, step.seconds * factor)
    seconds = round(time.monotonic() - begun, 1)
    late = f"ended after {step.seconds * factor:.0f} s" if status is None else ""
    if report.exists():
        return _of_report(step, report, status, late, seconds)
    if status == 0:
        return StepResult(name=step.name, outcome="passed", passed=1, seconds=seconds)
    reason = late or f"exit status {status}: {_last_words(log)}"
    return StepResult(name=step.name, outcome="failed", failed=1, reason=_shown(reason), seconds=seconds)


def _pytest(step: Step, report: Path) -> tuple[str, ...]:
    options = ("-q", "--durations=5", "-p", "no:cacheprovider", "-m", "slow or not slow", f"--junitxml={report}")
    chosen = ("-k", step.chosen) if step.chosen else ()
    return ("python", "-m", "pytest", *options, *chosen, *step.tests)


def _bounded(words: list[str], env: Mapping[str, str], log: Path, seconds: float) -> int | None:
    """Run a command and return its exit status; None where it took too long, and nothing of it is left then."""
    mark = uuid.uuid4().hex
    with log.open("w", encoding="utf-8") as stream:
        process = subprocess.Popen(
            words, cwd=ROOT, env={**env, _MARK: mark}, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            for pid in _marked(mark):  # Ray's processes leave the process group
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait(timeout=60)


def _marked(mark: str) -> list[int]:
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it ended, or is not ours to look at
            if entry.name.isdecimal() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def _of_report(step: Step, report: Path, status: int | None, late: str, seconds: float) -> StepResult:
    """The result of a JUnit report, of pytest or of ``verl-hw check``."""
    cases = ElementTree.parse(report).findall(".//testcase")  # noqa: S314 - our own tests wrote it
    bad = {_name(case): _message(case, "failure", "error") for case in cases if _has(case, "failure", "error")}
    skipped = [_message(case, "skipped") for case in cases if _has(case, "skipped")]
    reasons = [late] if late else []
    reasons += [f"{name}: {message}" for name, message in bad.items()]
    if status not in (0, None) and not bad:
        reasons.append(f"exit status {status}")
    failed = max(len(bad), int(status != 0))
    passed = len(cases) - len(bad) - len(skipped)
    outcome = "failed" if failed else ("passed" if passed else "skipped")
    reasons += [f"skipped: {reason}" for reason in dict.fromkeys(skipped)]
    reason = _shown("; ".join(reasons)) if reasons or outcome == "passed" else "nothing was chosen"
    counts = {"passed": passed, "failed": failed, "skipped": len(skipped)}
    return StepResult(name=step.name, outcome=outcome, reason=reason, seconds=seconds, **counts)


def _has(case: ElementTree.Element, *kinds: str) -> bool:
    return any(case.find(kind) is not None for kind in kinds)


def _name(case: ElementTree.Element) -> str:
    return str(case.get("name"))


def _message(case: ElementTree.Element, *kinds: str) -> str:
    found = next(one for one in map(case.find, kinds) if one is not None)
    lines = (found.get("message") or found.text or "").strip().splitlines()
    return lines[0] if lines else "no message"


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\w*(Error|Exception)\b.*:", line)]
    return (errors or lines or ["nothing was said"])[-1]


def _shown(reason: str) -> str:
    """A reason as it may stand in a committed file: short, and without a folder of this machine."""
    without = re.sub(r"(?:/[\w.+@-]+){2,}/", ".../", reason)
    return without if len(without) <= _LONGEST_REASON else f"{without[: _LONGEST_REASON - 3]}..."
