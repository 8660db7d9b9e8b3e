#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Write what the vendors' guides take from elsewhere; ``tests/docs/test_generated.py`` compares.

Tables of facts come from each wheel's ``HardwareSpec``; what was run, and the versions that the doctor calls tried,
from the recorded runs of the stacks (``scripts/stacks``), and from these the Dockerfiles; what was measured, from the
results files in ``docs/measured`` (docs/real_silicon.md). Text that all guides share is a file of ``docs/fragments``,
in which ``@key@`` and the like stand for the vendor's own names.
"""

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from boxlib.record import FAILED, NOT_RUN, PASSED, Record, measured
from devlib.dockerfiles import dockerfiles
from devlib.marked_sections import renewed
from devlib.stack_record import read_records
from devlib.stack_tables import locked_versions, simulator_table, stack_table, steps_text, tested_versions, versions_run
from devlib.stacks import TESTED_VERSIONS

if TYPE_CHECKING:
    from verl_hw_core import HardwareSpec

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FRAGMENTS = DOCS / "fragments"
MEASURED = DOCS / "measured"
# Vendors whose facts somebody has read in sources and marked; those of a new one are questions.
READ = ("cambricon", "enflame", "intel", "metax")


def specs() -> "list[HardwareSpec]":
    """Return the facts of every wheel in ``packages/``, by key; read without importing the wheel, which needs verl."""
    from verl_hw_tools.installed import installed_specs

    ours = {path.name for path in (ROOT / "packages").glob("verl-hw-*")}
    return [spec for spec in installed_specs() if spec.distribution in ours]


def documents() -> "dict[Path, HardwareSpec | None]":
    """Return the files that have sections, each with the vendor that it is about."""
    shared = (
        DOCS / "index.md",
        DOCS / "support.md",
        DOCS / "versions.md",
        ROOT / "shared" / "verl-hw-sim" / "README.md",
    )
    found: dict[Path, HardwareSpec | None] = dict.fromkeys(shared)
    for spec in specs():
        for path in sorted((DOCS / f"user_guide_{spec.key}").glob("*.md")):
            found[path] = spec
    return found


def document(path: Path, spec: "HardwareSpec | None") -> str:
    """Return the file's text with its sections renewed."""
    return renewed(path.read_text(encoding="utf-8"), Path(__file__).name, partial(_section, spec))


def whole_files() -> dict[Path, str]:
    """Return the text of every file that is generated as a whole."""
    return {TESTED_VERSIONS: tested_versions(read_records(), locked_versions()), **dockerfiles()}


def _section(spec: "HardwareSpec | None", name: str) -> str:
    if name == "vendors":
        return _vendors()
    if name == "measured":
        return _measured()
    if name == "experts":
        return _experts()
    recorded = {"versions": lambda _: _versions(), "stacks": stack_table, "simulator": simulator_table}
    if spec is None and name in recorded:
        return recorded[name](read_records())
    if name == "steps":
        return steps_text()
    if spec is None:
        raise ValueError(f"section {name!r} is about one vendor, and this document is not")
    tables = {"facts": _facts, "environment": _environment, "detection": _detection}
    return tables[name](spec) if name in tables else _fragment(name, spec)


def _fragment(name: str, spec: "HardwareSpec") -> str:
    text = (FRAGMENTS / f"{name}.md").read_text(encoding="utf-8")
    names = {
        "key": spec.key,
        "name": spec.display_name,
        "distribution": spec.distribution,
        "device": spec.device_name,
        "ccl": spec.ccl_backend,
        "mask": spec.visible_devices_envvar,
        "resource": spec.ray_resources[0],
        "verl_run": " and ".join(versions_run(read_records(), "verl")),
        "stacks": stack_table(read_records(), spec.key),
    }
    for word, value in names.items():
        text = text.replace(f"@{word}@", value)
    return text


def _vendors() -> str:
    rows = [
        [
            f"[{spec.display_name}](user_guide_{spec.key}/README.md)",
            f"`{spec.distribution}`",
            f"`{spec.device_name}`",
            f"`{spec.ccl_backend}`",
            _codes(spec.names),
            *_status(spec),
        ]
        for spec in specs()
    ]
    return _table(["", "wheel", "torch device", "collectives", "`VERL_PLATFORM`", "runs", "facts", "on hardware"], rows)


def _status(spec: "HardwareSpec") -> tuple[str, str, str]:
    """Say how verl runs there, what the facts rest on, and on which of the vendor's own devices it was measured."""
    facts = "confirmed from source, or marked" if spec.key in READ else "not confirmed"
    own = sorted({one.device for one in measured(MEASURED) if one.vendor == spec.key and one.vendors_own})
    return "simulated", facts, f"measured on {', '.join(own)}" if own else "nothing measured"


def _measured() -> str:
    records = measured(MEASURED)
    if not records:
        return "**Nothing on hardware.** No results of [a run on a device](real_silicon.md) have been sent yet."
    rows = [
        [
            f"measured on {record.device}",
            f"`verl-hw-{record.vendor}`" + ("" if record.vendors_own else ", on another vendor's device"),
            f"{record.date[:10]}, {record.devices} visible, {record.seconds:.0f} s",
            ", ".join(f"{name} {version}" for name, version in record.versions.items()),
            *(_steps(record, outcome) for outcome in (PASSED, FAILED, NOT_RUN)),
        ]
        for record in records
    ]
    head = ["device", "wheel", "run", "versions", PASSED, FAILED, NOT_RUN]
    return "**On hardware**, by [a run of the box](real_silicon.md), each step of it:\n\n" + _table(head, rows)


def _steps(record: Record, outcome: str) -> str:
    """Name the steps that ended so, with the first line of the reason."""
    steps = [step for step in record.steps if step.outcome == outcome]
    reasons = [step.reason.partition("\n")[0].replace("|", "/") for step in steps]
    named = [f"`{step.name}`" + (f": {reason}" if reason else "") for step, reason in zip(steps, reasons, strict=True)]
    return "; ".join(named) or "-"


def _versions() -> str:
    rows = [
        [row["name"], ", ".join(row["tested"]) or "-", row["floor"] or "-", row["ceiling"] or "-"]
        for row in json.loads(tested_versions(read_records(), locked_versions()))["packages"]
    ]
    return _table(["package", "run with", "from", "below"], rows)


def _experts() -> str:
    """What the matrix of tests/conformance/test_experts.py recorded."""
    import json

    record = json.loads((ROOT / "tests/conformance/experts_matrix.json").read_text(encoding="utf-8"))
    chips = {spec.key: spec.display_name for spec in specs()}
    vendors = [key for key in chips if any(key in cells for cells in record.values())]
    rows = []
    for name, cells in record.items():
        family, _, engine = name.rpartition("-")
        rows.append([f"`{family}`", f"`{engine}`", *(_ended(cells.get(vendor)) for vendor in vendors)])
    return _table(["model type", "`strategy`", *(chips[vendor] for vendor in vendors)], rows)


def _ended(cell: "dict[str, Any] | None") -> str:
    if cell is None:
        return ""
    return f"{cell['off_by']:.0e}" if cell["trains"] else f"refused: `{cell['error']}`"


def _facts(spec: "HardwareSpec") -> str:
    masks = _codes([spec.visible_devices_envvar])
    if spec.overriding_visible_envvars:
        masks += f"; stronger where set: {_codes(spec.overriding_visible_envvars)}"
    if spec.filtering_envvars:
        masks += f"; filters beside it: {_codes(spec.filtering_envvars)}"
    ipc = "tried on the running stack, shared memory where it does not fit" if spec.ipc else "no: shared memory"
    rows = [
        ["Platform key (`VERL_PLATFORM`)", _codes(spec.names)],
        ["Wheel", f"`{spec.distribution}`"],
        ["torch device", f"`{spec.device_name}`"],
        ["torch extension", _codes([spec.extension_module] if spec.extension_module else []) or "none"],
        ["Collective library (ccl)", f"`{spec.ccl_backend}`" + (", or `flagcx` with `USE_FLAGCX=1`" * spec.flagcx)],
        ["Visible devices", masks],
        ["Order of devices in a mask", "as listed" if spec.mask_order == "as_listed" else "ascending, however listed"],
        ["Ray resource", " or ".join(f"`{name}`" for name in spec.ray_resources)],
        ["Ray leaves the mask alone with", _codes(spec.ray_noset_envvars) or "nothing known"],
        ["IPC of device memory", ipc],
        ["Compute capability", "from the device module" if spec.capability == "module" else "none"],
        ["Allocator settings", f"`torch.{spec.allocator_setter}`" if spec.allocator_setter else "none"],
        ["Profiler ranges", f"`torch.{spec.range_module}`" if spec.range_module else "none"],
        [
            "CUDA migration (Megatron only)",
            _codes([spec.cuda_migration] if spec.cuda_migration else []) or "none known",
        ],
        ["Status", "; ".join(_status(spec))],
    ]
    return _table(["", ""], rows)


def _environment(spec: "HardwareSpec") -> str:
    rows = [[f"`{name}`", f"`{value}`", "training processes"] for name, value in spec.launch_env]
    rows += [[f"`{name}`", f"`{value}`", "rollout processes"] for name, value in spec.rollout_env]
    lines = [_table(["variable", "default", "given to"], rows)]
    if spec.trainer_options:
        options = [[f"`{name}`", f"`{value}`"] for name, value in spec.trainer_options]
        lines += [
            "The stack also needs these options of verl's trainer; the baseline script passes them on:\n",
            _table(["option", "value"], options),
        ]
    return "\n".join(lines)


def _detection(spec: "HardwareSpec") -> str:
    traces = spec.traces
    decides, supports = "decides", "supports only: others have it too"
    rows = []
    if traces.torch_version_tag:
        rows.append(["torch build", f"`{traces.torch_version_tag}` in its version", decides])
    if traces.torch_version_attribute:
        rows.append(["torch build", f"`torch.version.{traces.torch_version_attribute}`", decides])
    if traces.packages:
        rows.append(["package, looked up and not imported", _codes(traces.packages), decides])
    if traces.device_nodes:
        rows.append(["device node", _codes(traces.device_nodes), decides])
    for tool in traces.smi:
        command = " ".join([tool.command, *tool.args])
        where = f", also in {_codes(tool.paths)}" if tool.paths else ""
        rows.append(["management tool", f"`{command}`{where}", decides if tool.identifies_vendor else supports])
    if traces.pci_vendor:
        rows.append(["PCI vendor", f"`{traces.pci_vendor}`", decides if traces.pci_identifies_vendor else supports])
    return _table(["evidence", "looked for", ""], rows)


def _codes(names: "tuple[str, ...] | list[str]") -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


if __name__ == "__main__":
    for target, vendor in documents().items():
        target.write_text(document(target, vendor), encoding="utf-8")
    for target, text in whole_files().items():
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
