# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which traces make which vendor present, absent or unknown; every case in a fresh process."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from detectionkit import HANGS, OK, Machine, answer_of

NOBODY = dict.fromkeys(("cambricon", "enflame", "intel", "metax"), "absent")

RAISING_FINDER = """
import sys
class Broken:
    def find_spec(self, name, *_):
        if name.startswith("torch_"):
            raise OSError("broken")
sys.meta_path.insert(0, Broken())
"""
HIDDEN_METADATA = """
from importlib import metadata
def missing(name):
    raise metadata.PackageNotFoundError(name)
metadata.version = missing
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.make(tmp_path)


# name -> (what the machine has, what must be imported first, verdicts that differ from "absent", kind that decides)
CASES: dict[str, tuple[Callable[[Machine], object], str, dict[str, str], str]] = {
    "bare machine": (lambda m: None, "", {}, ""),
    "stock torch imported": (lambda m: None, "import torch", {}, ""),
    "metax torch": (lambda m: m.torch("2.8.0+metax3.5"), "", {"metax": "present"}, "torch_build"),
    "metax torch imported": (lambda m: m.torch("2.8.0+metax3.5"), "import torch", {"metax": "present"}, "torch_build"),
    "xpu torch by tag": (lambda m: m.torch("2.13.0+xpu"), "", {"intel": "present"}, "torch_build"),
    "xpu torch by attribute": (lambda m: m.torch("2.13.0", xpu="20260000"), "", {"intel": "present"}, "torch_build"),
    "xpu torch by attribute, imported": (
        lambda m: m.torch("2.13.0", xpu="20260000"),
        "import torch",
        {"intel": "present"},
        "torch_build",
    ),
    "xpu torch that only says it is compiled": (
        lambda m: None,
        "import torch; torch.xpu._is_compiled = lambda: True",
        {"intel": "present"},
        "torch_build",
    ),
    "torch_mlu installed": (lambda m: m.package("torch_mlu"), "", {"cambricon": "present"}, "packages"),
    "torch_gcu installed": (lambda m: m.package("torch_gcu"), "", {"enflame": "present"}, "packages"),
    "torch_mlu checkout without code": (lambda m: (m.site / "torch_mlu").mkdir(), "", {}, ""),
    "torch_mlu stub without spec": (
        lambda m: None,
        "import sys, types; sys.modules['torch_mlu'] = types.ModuleType('torch_mlu')",
        {},
        "",
    ),
    "torch_mlu installed and stubbed without spec": (
        lambda m: m.package("torch_mlu"),
        "import sys, types; sys.modules['torch_mlu'] = types.ModuleType('torch_mlu')",
        {"cambricon": "present"},
        "packages",
    ),
    "import of torch_mlu blocked": (lambda m: None, "import sys; sys.modules['torch_mlu'] = None", {}, ""),
    "extension device in the imported torch": (
        lambda m: m.torch("2.9.1+cpu", extension_device="mlu"),
        "import torch",
        {"cambricon": "present"},
        "runtime",
    ),
    "extension device, torch not imported": (lambda m: m.torch("2.9.1+cpu", extension_device="mlu"), "", {}, ""),
    "mlu node": (lambda m: m.node("cambricon_dev0"), "", {"cambricon": "present"}, "device_nodes"),
    "gcu nodes": (lambda m: (m.node("gcu0"), m.node("gcu1")), "", {"enflame": "present"}, "device_nodes"),
    "metax node": (lambda m: m.node("mxcd"), "", {"metax": "present"}, "device_nodes"),
    "node is a folder left by a bind mount": (lambda m: (m.root / "dev/mxcd").mkdir(parents=True), "", {}, ""),
    "accelerator on pci": (
        lambda m: m.pci("0000:3b:00.0", "0xcabc", "0x120000"),
        "",
        {"cambricon": "present"},
        "pci",
    ),
    "card in drm": (lambda m: m.file("sys/class/drm/card0/device/vendor", "0x9999\n"), "", {"metax": "present"}, "pci"),
    "bridge with the vendor's id": (lambda m: m.pci("0000:00:01.0", "0x1e36", "0x060400"), "", {}, ""),
    "integrated graphics of a laptop": (lambda m: m.pci("0000:00:02.0", "0x8086", "0x030000"), "", {}, ""),
    "tool of two vendors": (lambda m: m.tool("xpu-smi", OK), "", {}, ""),
    "tool exits 0": (lambda m: m.tool("mx-smi", OK), "", {"metax": "present"}, "smi"),
    "tool gets its arguments": (
        lambda m: m.tool("cnmon", '[ "$*" = info ]'),
        "",
        {"cambricon": "present"},
        "smi",
    ),
    "tool sees English and a closed stdin": (
        lambda m: m.tool("efsmi", '[ "$LC_ALL" = C ] && ! read -r line'),
        "",
        {"enflame": "present"},
        "smi",
    ),
    "tool in its own folder": (lambda m: m.tool("mx-smi", OK, folder="/opt/maca/bin"), "", {"metax": "present"}, "smi"),
    "tool in /usr/bin": (lambda m: m.tool("cnmon", OK, folder="/usr/bin"), "", {"cambricon": "present"}, "smi"),
    "tool exits 1": (lambda m: m.tool("mx-smi", "exit 1"), "", {"metax": "unknown"}, ""),
    "tool prints and exits 215": (lambda m: m.tool("cnmon", "echo busy; exit 215"), "", {"cambricon": "unknown"}, ""),
    "tool dies of a signal": (lambda m: m.tool("efsmi", "kill -SEGV $$"), "", {"enflame": "unknown"}, ""),
    "tool is not executable": (lambda m: m.tool("mx-smi", OK, mode=0o644), "", {"metax": "unknown"}, ""),
    "tool without interpreter": (
        lambda m: m.tool("mx-smi", "").write_text("#!/no/such/interpreter\n"),
        "",
        {"metax": "unknown"},
        "",
    ),
    "blocked on PATH, good in its own folder": (
        lambda m: (m.tool("mx-smi", OK, mode=0o644), m.tool("mx-smi", OK, folder="/opt/mxdriver/bin")),
        "",
        {"metax": "present"},
        "smi",
    ),
    "failing tool beside a device node": (
        lambda m: (m.tool("cnmon", "exit 255"), m.node("cambricon_dev0")),
        "",
        {"cambricon": "present"},
        "device_nodes",
    ),
    "finder that raises": (
        lambda m: None,
        RAISING_FINDER,
        {"cambricon": "unknown", "enflame": "unknown"},
        "",
    ),
    "finder that raises before one that knows": (
        lambda m: m.package("torch_gcu"),
        RAISING_FINDER,
        {"cambricon": "unknown", "enflame": "present"},
        "packages",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_traces_decide(machine: Machine, name: str) -> None:
    prepare, before, differing, kind = CASES[name]
    prepare(machine)

    answer = machine.survey(before=before)

    assert answer["verdicts"] == {**NOBODY, **differing}
    present = [key for key, verdict in differing.items() if verdict == "present"]
    assert answer["chosen"] == (present[0] if present else None)
    for key in present:
        assert [found for found, (verdict, _) in answer["evidence"][key].items() if verdict == "present"] == [kind]
    assert not answer["environment_changed"]
    # Neither torch nor a vendor's package was imported; the fakes would have ended the process besides.
    assert not {"torch", "torch_mlu", "torch_gcu", "pymxsml", "verl"} & set(answer["new_modules"])
    assert answer["children"] == []


def test_installed_torch_metadata_speaks_when_version_file_does_not(machine: Machine) -> None:
    machine.torch("2.8.0")
    info = machine.site / "torch-2.8.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0+metax3.5\n")
    assert machine.survey()["chosen"] == "metax"


def test_stale_metadata_does_not_overrule_the_build(machine: Machine) -> None:
    info = machine.site / "torch-2.8.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0+metax3.5\n")
    assert machine.survey()["chosen"] is None


def test_unreadable_torch_is_unknown(machine: Machine) -> None:
    (machine.site / "torch" / "version.py").write_text("not python at all (\n")
    answer = machine.survey(before=HIDDEN_METADATA)  # of the torch that is installed beside the fake one
    assert answer["verdicts"] == {**NOBODY, "intel": "unknown", "metax": "unknown"}


def test_hints_are_shown(machine: Machine) -> None:
    machine.pci("0000:00:02.0", "0x8086", "0x030000")
    tool = machine.tool("xpu-smi", OK)
    evidence = machine.survey()["evidence"]["intel"]
    assert evidence["pci_hint"][0] == "present"
    assert evidence["smi_hint"] == [
        "unknown",
        f"{tool} is there; not run, because another vendor has a tool of that name",
    ]
    thorough = machine.survey(call="thorough=True")
    assert thorough["evidence"]["intel"]["smi_hint"][0] == "present"
    assert thorough["verdicts"]["intel"] == "absent"


def test_tool_is_not_run_when_cheap_evidence_decides(machine: Machine) -> None:
    machine.node("cambricon_dev0")
    machine.tool("cnmon", HANGS)
    answer = machine.survey()
    assert answer["verdicts"]["cambricon"] == "present"
    assert "smi" not in answer["evidence"]["cambricon"]
    assert machine.survey(call="thorough=True, deadline_s=0.3")["evidence"]["cambricon"]["smi"][0] == "unknown"


def test_relative_path_entries_are_not_searched(machine: Machine) -> None:
    (machine.cache / "here").mkdir()
    machine.tool("cnmon", OK, folder=str(Path("..") / "cache" / "here"))
    answer = machine.survey(PATH=os.pathsep.join(("here", "", ".", str(machine.bin))))
    assert answer["verdicts"] == NOBODY


MASKED: tuple[dict[str, str], ...] = (
    {},
    {"CUDA_VISIBLE_DEVICES": ""},
    {"CUDA_VISIBLE_DEVICES": "-1", "MACA_VISIBLE_DEVICES": ""},
    {"MLU_VISIBLE_DEVICES": "", "CN_VISIBLE_DEVICES": ""},
    {"ZE_AFFINITY_MASK": "", "TOPS_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": "7"},
    {"MLU_VISIBLE_DEVICES": "garbage"},
)


def test_answer_does_not_depend_on_visibility(machine: Machine) -> None:
    # A tool that obeys the masks, as one built on the vendor's runtime would.
    masks = "$CUDA_VISIBLE_DEVICES$MACA_VISIBLE_DEVICES$MLU_VISIBLE_DEVICES$CN_VISIBLE_DEVICES"
    unset = '[ -z "${CUDA_VISIBLE_DEVICES+x}${MACA_VISIBLE_DEVICES+x}${MLU_VISIBLE_DEVICES+x}" ]'
    machine.tool("mx-smi", f'{unset} && [ -z "{masks}" ]')
    started = [machine.start(VERL_HW_PROBE_CACHE="0", **masked) for masked in MASKED]
    assert [answer_of(process)["chosen"] for process in started] == ["metax"] * len(MASKED)


def test_a_pipe_in_the_place_of_a_sysfs_file_is_passed_over(machine: Machine) -> None:
    machine.pci("0000:01:00.0", "0x1e36", "0x120000")
    machine.pci("0000:02:00.0", "0xcabc", "0x120000")
    for name in ("bus/pci/devices/0000:01:00.0/vendor", "bus/pci/devices/0000:02:00.0/class"):
        file = machine.root / "sys" / name
        file.unlink()
        os.mkfifo(file)
    machine.pci("0000:03:00.0", "0x9999", "0x030000")
    assert machine.survey()["verdicts"] == {**NOBODY, "metax": "present"}
