# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl trains on a simulated device as on a plain CPU under every setting that the walk runs (settings_walk.tsv).

A case says what a setting does to the numbers: ``changes`` them as it does on the CPU, leaves them the ``same``, or is
``refused``. Each runs on one and two ranks with FSDP2 and FSDP, or Megatron, or all three where they share the setting;
the reference is verl's FSDP2 engine on the CPU. What only Megatron has is compared with Megatron beside it. A
setting that is said to change numbers and does not is one that got lost.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment
from tiny_models import write_deep_language_model, write_value_model
from verl_settings import Row, rows

from verl_hw_sim import simulated_environment

HERE = Path(__file__).parent
PATHS = (HERE, HERE.parent / "support")
DEADLINE_S = 1500
RANKS = (1, 2)
STRATEGIES = {"fsdp": ("fsdp2", "fsdp"), "megatron": ("megatron",)}
"""By engine."""
ON_CPU = {
    "VERL_PLATFORM": "cpu_reference",
    "VERL_USE_EXTERNAL_MODULES": "cpu_reference",
    "VERL_USE_EXTERNAL_PLUGINS": "none",
}
NEAR = 1e-5
CHANGED = 1e-4
REFUSALS = ("UnsupportedModelSettingError", "ValueError", "AssertionError", "ImportError", "ModuleNotFoundError")


@dataclass(frozen=True)
class Case:
    """One value of one setting, for one engine.

    Attributes:
        pattern: The row's.
        engine: One of :data:`STRATEGIES`.
        expected: ``changes``, ``same`` or ``refused``.
        overrides: Overrides of verl's configuration, those of the run that it is compared with first.
        beside: Overrides of that run.
        ranks: Numbers of ranks that it is for.
    """

    pattern: str
    engine: str
    expected: str
    overrides: tuple[str, ...]
    beside: tuple[str, ...]
    ranks: tuple[int, ...] = RANKS

    @classmethod
    def read(cls, row: Row, text: str, engine: str) -> "Case":
        """Read a case of a row: ``same@2: actor.x=1 | actor.y=2``, where ``@2`` limits the ranks."""
        expected, settings = text.split(":", 1)
        expected, _, ranks = expected.partition("@")
        own, _, beside = settings.partition("|")
        common = tuple(map(whole_path, beside.split()))
        if "critic." in own and "critic." not in beside:
            common = ("critic.enable=True", *common)  # so that both runs train a critic
        numbers = (int(ranks),) if ranks else RANKS
        return cls(row.pattern, engine, expected, (*common, *map(whole_path, own.split())), common, numbers)

    def __str__(self) -> str:
        return f"{self.engine}, {self.pattern}: {' '.join(self.overrides[len(self.beside) :])}"

    @property
    def runs(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The configurations that it needs."""
        return self.overrides, self.beside

    @property
    def has_reference(self) -> bool:
        """Whether verl's FSDP2 on the CPU trains the same: not what only Megatron has, nor its value head (no bias)."""
        return self.engine == "fsdp" or not (self.pattern.startswith("Mcore") or "critic.enable=True" in self.beside)


def engines_of(row: Row) -> tuple[str, ...]:
    """The engines that have the settings of a row."""
    if row.pattern.startswith("*"):
        return tuple(STRATEGIES)
    return ("megatron",) if row.pattern.startswith("Mcore") else ("fsdp",)


def with_strategy(overrides: tuple[str, ...], strategy: str) -> tuple[str, ...]:
    """The overrides under a strategy; FSDP2 is the program's own choice."""
    role = "critic" if any(one.lstrip("+").startswith("critic.") for one in overrides) else "actor_rollout_ref.actor"
    return (*overrides, f"{role}.strategy=fsdp") if strategy == "fsdp" else overrides


def whole_path(override: str) -> str:
    """The override with verl's whole path."""
    sign = override[: len(override) - len(override.lstrip("+"))]
    path = override[len(sign) :]
    return sign + ("" if path.startswith(("critic.", "algorithm.")) else "actor_rollout_ref.") + path


CASES = [
    Case.read(row, text, engine)
    for row in rows()
    if row.evidence == "walked"
    for engine in engines_of(row)
    for text in row.cases
]

every_case = pytest.mark.parametrize("case", CASES, ids=str)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(DEADLINE_S)]


def run_program(
    engine: str, models: Path, out: Path, environment: dict[str, str], cases: list[tuple[str, ...]]
) -> dict:
    """Run the program; returns ``overrides -> ranks -> what each rank wrote``."""
    if not cases:
        return {}
    out.mkdir()
    (out / "cases.json").write_text(json.dumps(cases))
    log = out / "log.txt"
    arguments = [HERE / "walk_program.py", engine, models, out, out / "cases.json", *RANKS]
    with log.open("w") as stream:
        finished = subprocess.run(
            [sys.executable, "-W", "ignore", *map(str, arguments)],
            env=clean_environment(
                OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", PYTHONPATH=os.pathsep.join(map(str, PATHS)), **environment
            ),
            stdout=stream,
            stderr=subprocess.STDOUT,
            timeout=scaled(DEADLINE_S),
            check=False,
        )
    assert finished.returncode == 0, log.read_text()[-3000:]
    written = {
        size: [json.loads((out / f"result-{size}-{rank}.json").read_text()) for rank in range(size)] for size in RANKS
    }
    return {
        tuple(case): {size: [rank[index] for rank in written[size]] for size in RANKS}
        for index, case in enumerate(cases)
    }


def runs_of(cases: list[Case], strategy: str) -> list[tuple[str, ...]]:
    """The configurations that cases need under a strategy."""
    return sorted(
        {with_strategy(run, strategy) for case in cases if strategy in STRATEGIES[case.engine] for run in case.runs}
    )


@pytest.fixture(scope="module")
def selected(request) -> list[Case]:
    """The cases of the selected tests."""
    return [
        item.callspec.params["case"]
        for item in request.session.items
        if item.path == request.path and "case" in getattr(item, "fixturenames", ())
    ]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("settings-walk")
    write_deep_language_model(folder / "language_model", layers=3)
    write_value_model(folder / "value_model")
    return folder


@pytest.fixture(scope="module")
def simulated(models, selected) -> dict[str, dict]:
    """By strategy; FSDP2 and FSDP share a program."""
    device = simulated_environment("cambricon", max(RANKS))
    both = [*runs_of(selected, "fsdp2"), *runs_of(selected, "fsdp")]
    fsdp = run_program("fsdp", models, models / "fsdp", device, both)
    device |= {"VERL_USE_EXTERNAL_MODULES": "megatron_float32"}
    megatron = run_program("megatron", models, models / "megatron", device, runs_of(selected, "megatron"))
    return {"fsdp2": fsdp, "fsdp": fsdp, "megatron": megatron}


@pytest.fixture(scope="module")
def reference(models, selected) -> dict:
    """verl's own FSDP2 engine on the CPU, without our wheels."""
    cases = sorted({run for case in selected if case.has_reference for run in case.runs})
    return run_program("fsdp", models, models / "reference", ON_CPU, cases)


def numbers(written: dict) -> dict[str, float]:
    """Everything that is compared, by name: sums and norms, so that order and padding do not matter."""
    assert "error" not in written, written["error"]
    found = {}
    for index, step in enumerate(written["metrics"]):
        found |= {f"{name} {index}.{at}": value for name, values in step.items() for at, value in enumerate(values)}
    for name, values in written["inferred"].items():
        if name != "entropy":
            found |= {f"{name} {at}": value for at, value in enumerate(values)}
    return found | {f"change of {name}": norm for name, (_, norm) in written["changes"].items()}


def difference(found: dict, expected: dict) -> tuple[float, str]:
    """The largest relative difference, and where; numbers are relative to the largest of their kind.

    Ranks that share a pack, and updates in one mini-batch, have other rows and steps: what both have is compared then,
    and always the change of every weight.
    """
    one, other = numbers(found), numbers(expected)
    if found["changes"].keys() != expected["changes"].keys():
        return float("inf"), "names of weights"
    names = one.keys() & other.keys()
    if one.keys() != other.keys():
        names = {name for name in names if name.startswith(("change", "grad_norm 0"))}
    largest: dict[str, float] = {}
    for name in names:
        kind = name.split()[0]
        largest[kind] = max(largest.get(kind, 0.0), abs(other[name]))
    return max((abs(one[name] - other[name]) / (largest[name.split()[0]] or 1), name) for name in names)


@every_case
def test_a_setting_does_what_its_row_says(case: Case, simulated, reference):
    for strategy in STRATEGIES[case.engine]:
        for size in case.ranks:
            for rank in range(size):
                found, beside = (simulated[strategy][with_strategy(run, strategy)][size][rank] for run in case.runs)
                on_cpu = [reference[run][size][rank] for run in case.runs] if case.has_reference else [None, beside]
                judge(case, f"{strategy} on {size}", found, beside, *on_cpu)


def judge(case: Case, where: str, found: dict, beside: dict, cpu: dict | None, cpu_beside: dict) -> None:
    """Compare a run with the one beside it, and both with the CPU's where that trains the same."""
    if case.expected == "refused":
        assert "error" in found, f"{where}: trains, and differs by {difference(found, beside)} from {case.beside}"
        kind, _, text = found["error"].partition(": ")
        assert kind in REFUSALS, found["error"]
        assert kind != REFUSALS[0] or case.overrides[-1].partition("=")[0].rsplit(".", 1)[-1] in text, text
        return
    if where.startswith("fsdp on") and "fsdp_size=1" in found.get("error", ""):
        return  # one rank a shard, which test_gradient_settings.py speaks of
    expected = cpu_beside if case.expected == "same" else cpu
    if expected is not None:
        assert difference(found, expected)[0] < NEAR, (where, difference(found, expected))
    if case.expected == "changes":
        assert difference(found, beside)[0] > CHANGED, f"{where}: no number changes"


@pytest.mark.parametrize("beside", sorted({case.beside for case in CASES if case.engine == "fsdp"}), ids=" ".join)
def test_ranks_and_strategies_agree(beside: tuple[str, ...], simulated, reference):
    """Without this, a reference that is wrong on two ranks would make the simulated device right."""
    if beside not in reference or any("shuffle" in override for override in beside):
        pytest.skip("none of its cases is selected, or each rank shuffles on its own")
    expected = numbers(reference[beside][1][0])
    for found in (reference[beside], *(simulated[name][with_strategy(beside, name)] for name in STRATEGIES["fsdp"])):
        for rank in (one for size in RANKS for one in found[size]):
            whole = {key: value for key, value in numbers(rank).items() if key.startswith(("grad_norm", "change"))}
            assert whole == pytest.approx({key: expected[key] for key in whole}, rel=1e-4, abs=1e-9)


def all_runs():
    """Yield (overrides, engine) of every run; for a look at them without running any."""
    for engine, strategies in STRATEGIES.items():
        for strategy in strategies:
            for run in runs_of(CASES, strategy):
                yield run, engine
