# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``dev.py stack``: make the environment of a stack beside the locked one, try it, and record what happened."""

import datetime
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from devlib import environment as envs
from devlib.console import DevError, call, say
from devlib.interpreters import find_interpreter
from devlib.stack_record import StackRecord, StepResult, put_record, read_records
from devlib.stack_steps import STEPS, run_step
from devlib.stacks import Stack, install_lines, read_stack, refusal, stack_names

USAGE = """\
usage: python3 scripts/dev.py stack NAME [test|demo|shell] [--keep] [--only STEP ...]
       python3 scripts/dev.py stack --list

Makes the environment of a stack (scripts/stacks/NAME.json) in .stacks/NAME and removes it afterwards (6 GB).

  test           every step, and the result into scripts/stacks/results.json (the default)
  demo           verl-hw demo grpo on the stack's simulated device
  shell          your shell in the environment
  --keep         leave the environment, and use one that was left
  --only STEP    of test, these steps alone; in the record they replace their last results
"""
FOLDER = envs.ROOT / ".stacks"
# All wheels, since import verl is looked at with all of them, and what runs the tests.
TEST_WHEELS = ("cambricon", "enflame", "intel", "metax", "sim")
TEST_TOOLS = ("pytest>=8.3", "pytest-timeout>=2.3", "uv>=0.9")
_MODES = ("test", "demo", "shell")
_SPEED = "import sys; sys.path.insert(0, 'tests/support'); import machine_speed; print(machine_speed.measure())"


def stack(arguments: list[str]) -> int:
    """Run the subcommand.

    Returns:
        0; 1 where a step failed; 2 where the stack is refused; of a demo or shell its own exit status.
    """
    if not arguments or {"-h", "--help"} & set(arguments):
        print(USAGE, end="")
        return 0 if arguments else 2
    if arguments == ["--list"]:
        return _list()
    name, mode, keep, only = _parsed(arguments)
    chosen = read_stack(name)
    if refused := refusal(chosen):
        say(f"stack {name} is refused: {refused}")
        if mode == "test":
            put_record(_record(chosen, (), {}, refused=refused))
        return 2
    envs.check_compiler()
    with _environment(chosen, keep=keep) as env:
        if mode == "test":
            return _test(chosen, env, only)
        words = ["verl-hw", "demo", "grpo", "--vendor", str(chosen.simulates)]
        return call([env.get("SHELL", "sh")] if mode == "shell" else words, cwd=Path.cwd(), env=env)


def _parsed(arguments: list[str]) -> tuple[str, str, bool, tuple[str, ...]]:
    before, _, after = " ".join(arguments).partition(" --only ")
    name, *words = before.split()
    only = tuple(after.split())
    keep = "--keep" in (*words, *only)
    words = [word for word in words if word != "--keep"]
    only = tuple(word for word in only if word != "--keep")
    unknown = [word for word in only if word not in [step.name for step in STEPS]]
    if unknown or len(words) > 1 or not set(words) <= set(_MODES):
        steps = ", ".join(step.name for step in STEPS)
        raise DevError(f"stack does not know {' '.join(unknown or words)}; steps: {steps}\n\n{USAGE}")
    return name, words[0] if words else "test", keep, only


def _list() -> int:
    last = {record.stack: record for record in read_records()}
    for one in map(read_stack, stack_names()):
        versions = ", ".join(f"{pin.package} {pin.version}" for pin in one.pins)
        record = last.get(one.name)
        print(f"{one.name:15} {one.about}\n{'':15} {versions}\n{'':15} {_verdict(record) if record else 'never run'}")
    return 0


def _verdict(record: StackRecord) -> str:
    if record.refused:
        return f"{record.date}: refused, {record.refused}"
    counts = {outcome: sum(step.outcome == outcome for step in record.steps) for outcome in ("passed", "failed")}
    return f"{record.date}: {counts['passed']} of {len(record.steps)} steps passed, {counts['failed']} failed"


@contextmanager
def _environment(chosen: Stack, *, keep: bool) -> Iterator[dict[str, str]]:
    """Environment variables of the stack's environment, which is made first and removed afterwards."""
    folder = FOLDER / chosen.name
    venv, dist = folder / "venv", folder / "dist"
    uv = envs.find_uv()
    env = envs.child_env(uv)
    env.update(VIRTUAL_ENV=str(venv), UV_NO_CONFIG="1", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    env["PATH"] = os.pathsep.join([str(venv / "bin"), str(Path(uv).parent), os.environ.get("PATH", os.defpath)])
    for name in [name for name in env if name.startswith(("VERL_", "RAY_")) or name == "PYTHONPATH"]:
        del env[name]
    whole = folder / "installed"
    try:
        if keep and whole.exists():
            _renew_wheels(folder, env)
        else:
            interpreter = find_interpreter(chosen.python)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            _install(chosen, interpreter, folder, env)
            whole.touch()
        yield env
    finally:
        if not keep:
            for path in (venv, dist):
                shutil.rmtree(path, ignore_errors=True)
            whole.unlink(missing_ok=True)


def _install(chosen: Stack, interpreter: str, folder: Path, env: Mapping[str, str]) -> None:
    """Build our wheels, make the environment and install into it, with the lines that the Dockerfile has too."""
    say(f"== environment of stack {chosen.name} ({interpreter})")
    _build_wheels(folder, env)
    wheels = [f"verl-hw-{name}" for name in TEST_WHEELS]
    lines: list[tuple[str, ...]] = [("uv", "venv", "--quiet", "--python", interpreter, "venv")]
    first, *others = install_lines(chosen)
    # The tools go before what is installed against the others' requirements.
    lines += [first, ("uv", "pip", "install", "--quiet", "--find-links", "dist", *wheels, *TEST_TOOLS), *others]
    for line in lines:
        say(" ".join(line))
        if call(line, cwd=folder, env=env) != 0:
            raise DevError(
                f"uv could not install stack {chosen.name} (its message is above).\n"
                "        No room: 'uv cache prune', or UV_CACHE_DIR on another disk.\n"
                "        No such version: the package index of this machine has not all; see scripts/stacks."
            )


def _build_wheels(folder: Path, env: Mapping[str, str]) -> None:
    # With the workspace's settings: they bound the build's own tools.
    building = {name: value for name, value in env.items() if name not in ("UV_NO_CONFIG", "VIRTUAL_ENV")}
    build = ["uv", "build", "--quiet", "--all-packages", "--wheel", "--no-sources", "--out-dir", str(folder / "dist")]
    if call(build, cwd=envs.ROOT, env=building) != 0:
        raise DevError("uv could not build the wheels (its message is above)")


def _renew_wheels(folder: Path, env: Mapping[str, str]) -> None:
    """Put this tree's wheels into an environment that was left."""
    shutil.rmtree(folder / "dist", ignore_errors=True)
    _build_wheels(folder, env)
    wheels = sorted(str(path) for path in (folder / "dist").glob("*.whl"))
    if call(["uv", "pip", "install", "--quiet", "--no-deps", "--reinstall", *wheels], cwd=folder, env=env) != 0:
        raise DevError("uv could not install the wheels (its message is above)")


def _test(chosen: Stack, env: dict[str, str], only: tuple[str, ...]) -> int:
    versions = _versions(env)
    logs = FOLDER / chosen.name / "logs"
    logs.mkdir(exist_ok=True)
    answer = subprocess.run(
        ["python", "-c", _SPEED], cwd=envs.ROOT, env=env, capture_output=True, text=True, timeout=600, check=True
    )
    factor = float(answer.stdout)
    env["MACHINE_SPEED_FACTOR"] = f"{factor:.2f}"
    say(f"machine speed: {factor:.2f} times the time of a quiet machine; logs in {logs.relative_to(envs.ROOT)}")
    results = []
    for step in STEPS:
        if only and step.name not in only:
            continue
        result = run_step(step, chosen, logs, env, factor)
        if result is None:
            continue
        results.append(result)
        counts = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped"
        say(f"{step.name}: {result.outcome} ({counts}), {result.seconds:.0f} s {result.reason}".rstrip())
        record = _record(chosen, _merged(chosen, tuple(results), versions, partly=bool(only)), versions)
        put_record(record)
    failed = [result.name for result in results if result.outcome == "failed"]
    say(f"stack {chosen.name}: " + (f"FAILED: {', '.join(failed)}" if failed else "no step failed"))
    return 1 if failed else 0


def _merged(
    chosen: Stack, results: tuple[StepResult, ...], versions: dict[str, str], *, partly: bool
) -> tuple[StepResult, ...]:
    """The results of a part of the steps beside the recorded others, of the same versions."""
    if not partly:
        return results
    last = next((one for one in read_records() if one.key == (chosen.name, "simulated", chosen.device)), None)
    if last is not None and last.versions != versions:
        raise DevError(f"the record of {chosen.name} is of other versions: run all steps")
    found = {one.name: one for one in (*(last.steps if last else ()), *results)}
    return tuple(found[step.name] for step in STEPS if step.name in found)


def _record(
    chosen: Stack, steps: tuple[StepResult, ...], versions: dict[str, str], refused: str | None = None
) -> StackRecord:
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return StackRecord(
        stack=chosen.name, date=today, kind="simulated", device=chosen.device, versions=versions, steps=steps,
        refused=refused,
    )  # fmt: skip


def _versions(env: Mapping[str, str]) -> dict[str, str]:
    """What is installed, of the packages that stacks and the table of tested versions name."""
    table = json.loads((envs.ROOT / "shared/verl-hw-core/src/verl_hw_core/tested_versions.json").read_text("utf-8"))
    names = {row["name"] for row in table["packages"]} | {"numpy", "TransferQueue", "verl-hw-core"}
    command = ["uv", "pip", "list", "--quiet", "--format", "json"]
    listed = subprocess.run(command, cwd=FOLDER, env=env, capture_output=True, text=True, timeout=120, check=True)
    found = {one["name"]: one["version"] for one in json.loads(listed.stdout)}
    wanted = {name: found[name.lower()] for name in names if name.lower() in found}
    python = ["python", "-c", "import platform; print(platform.python_version())"]
    answer = subprocess.run(python, env=env, capture_output=True, text=True, timeout=60, check=True)
    return {"python": answer.stdout.strip(), **dict(sorted(wanted.items(), key=lambda one: one[0].lower()))}
