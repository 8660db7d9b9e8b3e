# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl itself: installed, importable, on the expected platform, with engines."""

from collections.abc import Callable
from typing import Any

from verl_hw_core.detection.lookup import look_up
from verl_hw_core.upstream import LEDGER
from verl_hw_core.upstream.installed_state import state
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.mends import mend_of_import
from verl_hw_tools.doctor.model import Finding, crash, fail, ok, skip, warn
from verl_hw_tools.doctor.registry import FULL, check
from verl_hw_tools.doctor.stages import Stage
from verl_hw_tools.doctor.versions import installed_version

_NOT_IMPORTED = (
    "verl itself was not imported, since no hardware of an installed vendor is here; "
    "to import it all the same: verl-hw doctor --vendor <vendor>"
)
_BY_HAND = "python -c 'import verl'   # and mend what its last line names"
_BACKENDS_OF_FSDP = ("fsdp", "fsdp2")


@check("verl.installed", why="verl before 0.9 has no interface for plugins and ignores them without a word")
def installed(_facts: Facts) -> Finding:
    """verl is installed, with its interface for plugins."""
    version = installed_version("verl")
    if version is None and look_up("verl").spec is None:
        return fail("verl is not installed here", expected="verl>=0.9", mend="pip install --no-deps 'verl>=0.9'")
    if version is None:
        return ok("verl can be found, without a package: a source checkout on PYTHONPATH")
    return ok(f"verl {version}")


@check("verl.import", why="nothing of verl works until its import does", needs=(FULL,))
def importing(facts: Facts) -> Finding:
    """verl can be imported."""
    stage = facts.verl.stages.get("verl")
    if stage is None:
        return skip("torch or verl is missing or broken")
    if stage.data is not None and not stage.data["full"]:
        return skip(_NOT_IMPORTED)
    if stage.went_well:
        return ok(f"verl {stage.data['version']} ({stage.data['file']}), {stage.seconds:.1f} s")
    inner = facts.verl.died_in
    where = f" in {inner.name}" if inner is not None and inner.name != "verl" else ""
    return _unwell(stage, f"import verl{where}")


@check(
    "verl.platform",
    why="every worker asks it for its device, its collective library and its Ray resource",
    needs=(FULL,),
)
def platform(facts: Facts) -> Finding:
    """verl takes the platform that the evidence speaks for."""
    stage = facts.verl.stages.get("platform")
    if stage is None:
        return _skipped(facts)
    if not stage.went_well:
        mend = "unset VERL_PLATFORM   # if it is set; else: verl-hw detect"
        return _unwell(stage, "get_platform()", expected="a platform", mend=mend)
    data = stage.data
    text = (
        f"{data['vendor']} (torch.{data['device']}, {data['ccl']}, Ray resource {data['resource']}), "
        f"{data['class']} of {data['distribution']}"
    )
    expected = facts.choice.vendor
    if expected is not None and data["vendor"] != expected:
        return fail(
            f"verl takes {text}",
            expected=f"{expected}: {facts.choice.because}",
            mend=f"export VERL_PLATFORM={expected}",
        )
    return ok(text)


@check(
    "verl.engines", why="a pair without an engine ends the run in a worker, after the model was loaded", needs=(FULL,)
)
def engines(facts: Facts) -> Finding:
    """The vendor has training engines (model type x backend)."""
    stage = facts.verl.stages.get("engines")
    if stage is None:
        return _skipped(facts)
    if not stage.went_well:
        return _unwell(stage, "import verl.workers.engine")
    rows: list[dict[str, Any]] = stage.data["rows"]
    table = "\n".join([*map(_row, rows), *(f"verl: {text}" for text in stage.data["not_imported"])])
    there = [f"{row['model_type']} x {row['backend']}" for row in rows if row["engine"]]
    if facts.vendor is None or not facts.present:
        return Finding(status=ok("").status, observed=f"in this process: {', '.join(there) or 'none'}", details=table)
    own = facts.vendor.distribution
    missing = [
        f"{row['model_type']} x {row['backend']}"
        for row in rows
        if row["backend"] in _BACKENDS_OF_FSDP and row["distribution"] != own
    ]
    if missing:
        return fail(
            f"no engine of {own} for {', '.join(missing)}",
            expected=f"engines of {own}",
            mend="verl-hw doctor --check plugins   # says why they were not registered",
            details=table,
        )
    gone = [f"{row['model_type']} x {row['backend']}" for row in rows if not row["engine"]]
    return ok(f"{', '.join(there)}; none for {', '.join(gone) or 'no other'}", details=table)


@check(
    "verl.transfer",
    why="weights go from training to rollout through one; the default (naive) needs nothing",
    needs=(FULL,),
)
def transfer(facts: Facts) -> Finding:
    """verl's checkpoint engines are known."""
    stage = facts.verl.stages.get("transfer")
    if stage is None:
        return _skipped(facts)
    if not stage.went_well:
        return _unwell(stage, "import verl.checkpoint_engine", report=warn)
    errors: dict[str, str] = stage.data["import_errors"]
    missing = "; ".join(f"{name}: {error}" for name, error in errors.items())
    return ok(
        f"{', '.join(stage.data['registered']) or 'none'} registered"
        + (f"; not importable: {missing}" if missing else "")
    )


@check(
    "verl.ledger",
    why="where verl-hw reaches into verl and torch, another version may have another shape",
    needs=(FULL,),
)
def ledger(facts: Facts) -> Finding:
    """Every place where verl-hw changes verl or torch was read in the installed version."""
    rows = facts.verl.data("ledger")
    in_force = f"in force in a process that imported verl: {', '.join(rows) or 'none'}" if rows is not None else ""
    untried = [(row.id, said) for row in LEDGER if "not tried" in (said := state(row))]
    if untried:
        return warn(
            "; ".join(f"{name}: {said}" for name, said in untried),
            expected="versions that the rows name",
            mend="verl-hw ledger   # and upgrade: pip install -U --no-deps verl-hw-core",
            details=in_force,
        )
    return ok(f"{len(LEDGER)} places, all read in what is installed" + (f"; {in_force}" if in_force else ""))


def _row(row: dict[str, Any]) -> str:
    found = f"{row['engine']} ({row['distribution']})" if row["engine"] else f"none: {row['why_not']}"
    return f"{row['model_type']} x {row['backend']}: {found}"


def _unwell(
    stage: Stage,
    action: str,
    *,
    expected: str = "an import without an error",
    mend: str | None = None,
    report: Callable[..., Finding] | None = None,
) -> Finding:
    """What to say of a stage that raised or died; ``report`` where that is no failure of the machine."""
    report = report or (crash if stage.died else fail)
    said = f"{action}: {stage.error}"
    return report(said, expected=expected, mend=mend or mend_of_import(stage.error) or _BY_HAND, details=stage.trace)


def _skipped(facts: Facts) -> Finding:
    dead = facts.verl.died_in
    if dead is not None:
        return skip(f"not reached: the process died in {dead.name}")
    verl = facts.verl.stages.get("verl")
    if verl is not None and verl.data is not None:
        return skip(_NOT_IMPORTED)
    return skip("torch or verl is missing or broken")
