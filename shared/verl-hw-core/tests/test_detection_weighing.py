# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How evidence is weighed, how one vendor is chosen among several, and what people get to read."""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from detectionkit import CAMBRICON, ENFLAME, METAX, SPECS, Machine, make_spec
from machine_speed import scaled

from verl_hw_core.detection import Evidence, Verdict, explain, forget, survey
from verl_hw_core.detection.evidence import weigh
from verl_hw_core.errors import InvalidSpecError, ProbeRootError
from verl_hw_core.facts.hardware import Traces


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine.make(tmp_path)
    for name in ("VERL_HW_PROBE_ROOT", "PATH", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, made.environment()[name])
    forget()
    yield made
    forget()


def _evidence(kind: str, verdict: Verdict) -> Evidence:
    return Evidence(kind, verdict, "seen in a test", 0.0012)


@pytest.mark.parametrize(
    ("verdicts", "expected", "strength"),
    [
        ({}, Verdict.ABSENT, 0),
        ({"packages": Verdict.ABSENT, "smi": Verdict.ABSENT}, Verdict.ABSENT, 0),
        ({"packages": Verdict.ABSENT, "smi": Verdict.UNKNOWN}, Verdict.UNKNOWN, 0),
        ({"smi": Verdict.UNKNOWN, "pci": Verdict.PRESENT}, Verdict.PRESENT, 1),
        ({"torch_build": Verdict.PRESENT, "smi": Verdict.ABSENT}, Verdict.PRESENT, 5),
        ({"device_nodes": Verdict.PRESENT, "packages": Verdict.PRESENT}, Verdict.PRESENT, 4),
        ({"smi_hint": Verdict.PRESENT, "pci_hint": Verdict.PRESENT}, Verdict.ABSENT, 0),
        ({"smi_hint": Verdict.UNKNOWN}, Verdict.ABSENT, 0),
    ],
)
def test_weigh(verdicts: dict[str, Verdict], expected: Verdict, strength: int) -> None:
    finding = weigh("vendor", [_evidence(kind, verdict) for kind, verdict in verdicts.items()])
    assert (finding.verdict, finding.strength) == (expected, strength)


def test_explain_gives_one_line_for_each_piece() -> None:
    finding = weigh("vendor", [_evidence("packages", Verdict.ABSENT), _evidence("pci_hint", Verdict.PRESENT)])
    assert explain(finding).splitlines() == [
        "vendor: absent",
        "  packages: absent, seen in a test [1.2 ms]",
        "  pci_hint: present (hint only), seen in a test [1.2 ms]",
    ]
    assert "nothing to look for" in explain(weigh("vendor", []))


def test_stronger_evidence_wins_in_any_order(machine: Machine) -> None:
    machine.node("mxcd")
    machine.pci("0000:3b:00.0", "0x1e36", "0x120000")  # of the vendor with the better rank
    for order in itertools.permutations(SPECS):
        forget()
        found = survey(order)
        assert (found.chosen, found.conflict) == ("metax", ("metax", "enflame"))


def test_rank_decides_between_equals_in_any_order(machine: Machine) -> None:
    for node in ("mxcd", "cambricon_dev0", "gcu0"):
        machine.node(node)
    for order in itertools.permutations(SPECS):
        forget()
        found = survey(order)
        assert (found.chosen, found.conflict) == ("enflame", ("enflame", "cambricon", "metax"))


def test_key_decides_between_equal_ranks(machine: Machine) -> None:
    machine.node("both")
    specs = [make_spec(key, "cuda", Traces(device_nodes=("/dev/both",))) for key in ("b", "a")]
    assert survey(specs).conflict == ("a", "b")


def test_conflict_message_names_all_and_the_way_out(machine: Machine) -> None:
    machine.node("mxcd")
    assert survey([METAX]).conflict_message() == ""
    machine.node("gcu0")
    message = survey(SPECS).conflict_message()
    assert message == (
        "Several accelerators look present: enflame (/dev/gcu0 exists); metax (/dev/mxcd exists). Using enflame."
        " Set VERL_PLATFORM to one of enflame, metax to choose and to silence this warning."
    )


def test_survey_is_kept_for_its_inputs(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    first = survey(SPECS)
    machine.node("gcu0")
    assert survey(tuple(reversed(SPECS))) is first
    assert survey([ENFLAME]).chosen == "enflame"  # other vendors asked, so looked anew
    monkeypatch.setenv("PATH", "/nowhere")
    assert survey(SPECS).chosen == "enflame"
    monkeypatch.setenv("PATH", str(machine.bin))
    assert survey(SPECS) is first
    monkeypatch.setattr("sys.path", [*sys.path, str(machine.root)])
    assert survey(SPECS).chosen == "enflame"
    monkeypatch.setattr("sys.path", sys.path[:-1])
    forget()
    assert survey(SPECS).chosen == "enflame"


def test_findings_cannot_be_changed(machine: Machine) -> None:
    with pytest.raises(TypeError):
        survey(SPECS).findings["other"] = weigh("other", [])  # type: ignore[index]


def test_vendor_without_traces_is_absent(machine: Machine) -> None:
    assert survey([make_spec("none", "none", Traces())]).findings["none"].verdict is Verdict.ABSENT


def test_dotted_package_cannot_be_told(machine: Machine) -> None:
    found = survey([make_spec("dotted", "none", Traces(packages=("os.path",)))])
    assert found.findings["dotted"].verdict is Verdict.UNKNOWN


def test_two_specs_with_one_key_are_refused(machine: Machine) -> None:
    with pytest.raises(InvalidSpecError, match="own key"):
        survey([CAMBRICON, make_spec("cambricon", "mlu", Traces())])


def test_probe_root_must_be_a_folder(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERL_HW_PROBE_ROOT", str(machine.root / "missing"))
    with pytest.raises(ProbeRootError, match="VERL_HW_PROBE_ROOT"):
        survey(SPECS)


def test_survey_without_traces_is_quick(machine: Machine) -> None:
    survey(SPECS)  # imports what probing needs
    forget()
    # 50 ms for one vendor is the limit; four take about 5 ms on an idle core, the best of several tells.
    taken = []
    for _ in range(5):
        taken.append(survey(SPECS).seconds)
        forget()
    assert min(taken) < scaled(0.2)
