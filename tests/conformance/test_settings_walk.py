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
STRATEGIES = ("fsdp2", "fsdp", "megatron")
ON_CPU = {
    "VERL_PLATFORM": "cpu_reference",
    "VERL_USE_EXTERNAL_MODULES": "cpu_reference",
    "VERL_USE_EXTERNAL_PLUGINS": "none",
}
NEAR = 1e-5
CHANGED = 1e-4


@dataclass(frozen=True)
class Case:
    """One value of one setting.

    Attributes:
        pattern: The row's.
        expected: ``changes``, ``same`` or ``refused``.
        overrides: Overrides of verl's configuration, those of the run that it is compared with first.
        beside: Overrides of that run.
        strategies: Of :data:`STRATEGIES`, those that have the setting.
        ranks: Numbers of ranks that it is for.
    """

    pattern: str
    expected: str
    overrides: tuple[str, ...]
    beside: tuple[str, ...]
    strategies: tuple[str, ...]
    ranks: tuple[int, ...] = RANKS

    @classmethod
    def read(cls, row: Row, text: str) -> "Case":
        """Read a case of a row: ``same@2: actor.x=1 | actor.y=2``, where ``@2`` limits the ranks."""
        expected, settings = text.split(":", 1)
        expected, _, ranks = expected.partition("@")
        own, _, beside = settings.partition("|")
        common = tuple(map(whole_path, beside.split()))
        if "critic." in own and "critic." not in beside:
            common = ("critic.enable=True", *common)  # so that both runs train a critic
        numbers = (int(ranks),) if ranks else RANKS
        strategies = STRATEGIES if row.pattern.startswith("*") else STRATEGIES[:2]
        if row.pattern.startswith("Mcore"):
            strategies = STRATEGIES[2:]
        return cls(row.pattern, expected, (*common, *map(whole_path, own.split())), common, strategies, numbers)

    def __str__(self) -> str:
        return f"{self.pattern}: {' '.join(self.overrides[len(self.beside) :])}"

    @property
    def runs(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The configurations that it needs."""
        return self.overrides, self.beside


def with_strategy(overrides: tuple[str, ...], strategy: str) -> tuple[str, ...]:
    """The overrides under a strategy; FSDP2 is the program's own choice."""
    role = "critic" if any(one.lstrip("+").startswith("critic.") for one in overrides) else "actor_rollout_ref.actor"
    return (*overrides, f"{role}.strategy=fsdp") if strategy == "fsdp" else overrides


def whole_path(override: str) -> str:
    """The override with verl's whole path."""
    sign = override[: len(override) - len(override.lstrip("+"))]
    path = override[len(sign) :]
    return sign + ("" if path.startswith(("critic.", "algorithm.")) else "actor_rollout_ref.") + path


CASES = [Case.read(row, text) for row in rows() if row.evidence == "walked" for text in row.cases]
every_case = pytest.mark.parametrize(
    "case",
    CASES,
    ids=str,
)
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
    return sorted({with_strategy(run, strategy) for case in cases if strategy in case.strategies for run in case.runs})


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
    return run_program("fsdp", models, models / "reference", ON_CPU, runs_of(selected, "fsdp2"))


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
    """The largest relative difference, and where; numbers are relative to the largest of their kind."""
    one, other = numbers(found), numbers(expected)
    assert one.keys() == other.keys()
    kind = lambda name: name.split()[0]  # noqa: E731
    largest = {kind(name): max(abs(other[like]) for like in other if kind(like) == kind(name)) for name in other}
    return max((abs(one[name] - other[name]) / (largest[kind(name)] or 1), name) for name in other)


def every_run(case: Case, simulated: dict, reference: dict):
    """Yield (strategy, ranks, the case's run, the run beside it, their CPU runs) for every rank."""
    for strategy in case.strategies:
        for size in case.ranks:
            for rank in range(size):
                found = [simulated[strategy][with_strategy(run, strategy)][size][rank] for run in case.runs]
                yield strategy, size, *found, *(reference[run][size][rank] if reference else None for run in case.runs)


@every_case
def test_a_setting_does_what_its_row_says(case: Case, simulated, reference):
    for strategy, size, found, beside, cpu, cpu_beside in every_run(case, simulated, reference):
        where = f"{strategy} on {size}"
        if case.expected == "refused":
            assert "error" in found, f"{where}: trains, and differs by {difference(found, beside)} from {case.beside}"
            continue
        if strategy == "fsdp" and "fsdp_size=1" in found.get("error", ""):
            continue  # one rank a shard, which test_gradient_settings.py speaks of
        if case.pattern.startswith("Mcore"):
            expected = beside if case.expected == "same" else found
        elif strategy == "megatron" and "critic.enable=True" in case.beside:
            expected = beside if case.expected == "same" else found  # FSDP's value head has a bias, Megatron's none
        else:
            expected = cpu_beside if case.expected == "same" else cpu
        assert difference(found, expected)[0] < NEAR, (where, difference(found, expected))
        if case.expected == "changes":
            assert difference(found, beside)[0] > CHANGED, f"{where}: no number changes"


@pytest.mark.parametrize("beside", sorted({case.beside for case in CASES}), ids=" ".join)
def test_ranks_and_strategies_agree(beside: tuple[str, ...], simulated, reference):
    """Without this, a reference that is wrong on two ranks would make the simulated device right."""
    if beside not in reference or any("shuffle" in override for override in beside):
        pytest.skip("none of its cases is selected, or each rank shuffles on its own")
    expected = numbers(reference[beside][1][0])
    for found in (reference[beside], *(simulated[name][with_strategy(beside, name)] for name in STRATEGIES[:2])):
        for rank in (one for size in RANKS for one in found[size]):
            whole = {key: value for key, value in numbers(rank).items() if key.startswith(("grad_norm", "change"))}
            assert whole == pytest.approx({key: expected[key] for key in whole}, rel=1e-4, abs=1e-9)


def all_runs():
    """Yield (overrides, added, engine) of every run; for a look at them without running any."""
    for strategy in STRATEGIES:
        engine = "megatron" if strategy == "megatron" else "fsdp"
        for run in runs_of(CASES, strategy):
            yield run, (), engine
