# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl trains on a simulated device as on a plain CPU under every setting that the walk runs (settings_walk.tsv).

A case says what a setting does to the numbers: ``changes`` them as it does on the CPU, leaves them the ``same``, or is
``refused``. Each runs with FSDP2 and FSDP on one and two ranks; the reference is verl's FSDP2 engine on the CPU. A
setting that is said to change numbers and does not is one that got lost.
"""

import json
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
DEADLINE_S = 1500
RANKS = (1, 2)
STRATEGIES = {"fsdp2": (), "fsdp": ("actor_rollout_ref.actor.strategy=fsdp", "critic.strategy=fsdp")}
ON_CPU = {
    "VERL_PLATFORM": "cpu_reference",
    "VERL_USE_EXTERNAL_MODULES": "cpu_reference",
    "VERL_USE_EXTERNAL_PLUGINS": "none",
}
NEAR = 1e-5
CHANGED = 1e-4
IN_CI = (
    "*ActorConfig.entropy_coeff",
    "*ActorConfig.kl_loss_coef",
    "*ActorConfig.use_dynamic_bsz",
    "*CriticConfig.cliprange_value",
    "FSDPActorConfig.grad_clip",
    "FSDPCriticConfig.grad_clip",
    "FSDPEngineConfig.dtype",
    "FSDPEngineConfig.param_offload",
    "FSDPEngineConfig.pad_to_length",
    "FSDPEngineConfig.ulysses_sequence_parallel_size",
    "FSDPOptimizerConfig.clip_grad",
    "HFModelConfig.lora_rank",
    "HFModelConfig.lora.rank",
    "HFModelConfig.use_remove_padding",
)


@dataclass(frozen=True)
class Case:
    """One value of one setting.

    Attributes:
        pattern: The row's.
        expected: ``changes``, ``same`` or ``refused``.
        overrides: Overrides of verl's configuration, those of the run that it is compared with first.
        beside: Overrides of that run.
        ranks: Numbers of ranks that it is for.
    """

    pattern: str
    expected: str
    overrides: tuple[str, ...]
    beside: tuple[str, ...]
    ranks: tuple[int, ...] = RANKS

    @classmethod
    def read(cls, row: Row, text: str) -> "Case":
        """Read a case of a row: ``same@2: actor.x=1 | actor.y=2``, where ``@2`` limits the ranks."""
        expected, settings = text.split(":", 1)
        expected, _, ranks = expected.partition("@")
        own, _, beside = settings.partition("|")
        common = tuple(map(whole_path, beside.split()))
        if "critic." in own and "critic." not in beside:
            common = ("critic.strategy=fsdp2", *common)  # so that both runs train a critic
        numbers = (int(ranks),) if ranks else RANKS
        return cls(row.pattern, expected, (*common, *map(whole_path, own.split())), common, numbers)

    def __str__(self) -> str:
        return f"{self.pattern}: {' '.join(self.overrides[len(self.beside) :])}"


def whole_path(override: str) -> str:
    """The override with verl's whole path."""
    sign = override[: len(override) - len(override.lstrip("+"))]
    path = override[len(sign) :]
    return sign + ("" if path.startswith(("critic.", "algorithm.")) else "actor_rollout_ref.") + path


CASES = [Case.read(row, text) for row in rows() if row.evidence == "walked" for text in row.cases]
every_case = pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.ci(priority=2)] if case.pattern in IN_CI else []) for case in CASES],
    ids=str,
)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(DEADLINE_S)]


def run_program(models: Path, out: Path, environment: dict[str, str], cases: list[tuple[str, ...]]) -> dict:
    """Run the program; returns ``overrides -> ranks -> what each rank wrote``."""
    out.mkdir()
    (out / "cases.json").write_text(json.dumps(cases))
    log = out / "log.txt"
    with log.open("w") as stream:
        finished = subprocess.run(
            [sys.executable, "-W", "ignore", str(HERE / "walk_program.py"), *map(str, (models, out, out / "cases.json", *RANKS))],
            env=clean_environment(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", PYTHONPATH=str(HERE), **environment),
            stdout=stream,
            stderr=subprocess.STDOUT,
            timeout=scaled(DEADLINE_S),
            check=False,
        )  # fmt: skip
    assert finished.returncode == 0, log.read_text()[-3000:]
    written = {
        size: [json.loads((out / f"result-{size}-{rank}.json").read_text()) for rank in range(size)] for size in RANKS
    }
    return {
        tuple(case): {size: [rank[index] for rank in written[size]] for size in RANKS}
        for index, case in enumerate(cases)
    }


@pytest.fixture(scope="module")
def selected(request) -> list[tuple[str, ...]]:
    """Configurations of the selected cases and of what they are compared with."""
    cases = [
        item.callspec.params["case"]
        for item in request.session.items
        if item.path == request.path and "case" in getattr(item, "fixturenames", ())
    ]
    return sorted({one for case in cases for one in (case.overrides, case.beside)})


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("settings-walk")
    write_deep_language_model(folder / "language_model", layers=3)
    write_value_model(folder / "value_model")
    return folder


@pytest.fixture(scope="module")
def simulated(models, selected) -> dict[str, dict]:
    """By strategy."""
    cases = [(*case, *added) for added in STRATEGIES.values() for case in selected]
    found = run_program(models, models / "simulated", simulated_environment("cambricon", max(RANKS)), cases)
    return {name: {case: found[(*case, *added)] for case in selected} for name, added in STRATEGIES.items()}


@pytest.fixture(scope="module")
def reference(models, selected) -> dict:
    """verl's own FSDP2 engine on the CPU, without our wheels."""
    return run_program(models, models / "reference", ON_CPU, selected)


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


def difference(found: dict, expected: dict, names: set[str] | None = None) -> tuple[float, str]:
    """The largest relative difference, and where; numbers are relative to the largest of their kind."""
    one, other = numbers(found), numbers(expected)
    assert one.keys() == other.keys()
    kind = lambda name: name.split()[0]  # noqa: E731
    largest = {kind(name): max(abs(other[like]) for like in other if kind(like) == kind(name)) for name in other}
    return max((abs(one[name] - other[name]) / (largest[kind(name)] or 1), name) for name in other)


def every_run(case: Case, simulated: dict, reference: dict):
    """Yield (strategy, ranks, the case's run, the run beside it, their CPU runs) for every rank."""
    for strategy, found in simulated.items():
        for size in case.ranks:
            for rank in range(size):
                pick = [runs[name][size][rank] for runs in (found, reference) for name in (case.overrides, case.beside)]
                yield strategy, size, *pick


@every_case
def test_a_setting_does_what_its_row_says(case: Case, simulated, reference):
    for strategy, size, found, beside, cpu, cpu_beside in every_run(case, simulated, reference):
        where = f"{strategy} on {size}"
        if case.expected == "refused":
            assert "error" in found, f"{where}: trains, with {difference(found, beside)} beside {case.beside}"
            continue
        if "FSDP never averages" in found.get("error", "") and strategy == "fsdp":
            continue  # one rank a shard, which test_gradient_settings.py speaks of
        expected = cpu_beside if case.expected == "same" else cpu
        assert difference(found, expected)[0] < NEAR, (where, difference(found, expected))
        if case.expected == "changes":
            assert difference(found, beside)[0] > CHANGED, f"{where}: no number changes"


@pytest.mark.parametrize("beside", sorted({case.beside for case in CASES}), ids=" ".join)
def test_ranks_and_strategies_agree(beside: tuple[str, ...], simulated, reference):
    """Without this, a reference that is wrong on two ranks would make the simulated device right."""
    if beside not in reference:
        pytest.skip("none of its cases is selected")
    expected = reference[beside][1][0]
    if any("shuffle" in override for override in beside):
        pytest.skip("each rank shuffles on its own")
    for found in (reference, *simulated.values()):
        for size in RANKS:
            for rank in found[beside][size]:
                left = {
                    name: value for name, value in numbers(rank).items() if name.startswith(("grad_norm", "change"))
                }
                assert left == pytest.approx({name: numbers(expected)[name] for name in left}, rel=1e-4, abs=1e-9)
