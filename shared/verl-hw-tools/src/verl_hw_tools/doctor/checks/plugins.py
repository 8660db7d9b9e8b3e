# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's plugins as they really load: with the traceback that verl hides, and who is in force afterwards."""

import re
from collections.abc import Sequence
from importlib import metadata

from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.mends import mend_of_import, missing_module
from verl_hw_tools.doctor.model import Finding, crash, fail, ok, skip, warn
from verl_hw_tools.doctor.programs.plugins import PREFIX
from verl_hw_tools.doctor.registry import VERL, check
from verl_hw_tools.doctor.stages import Stage
from verl_hw_tools.installed import PLUGIN_GROUP, PLUGINS_ENVVAR, name_of


@check(
    "plugins.load",
    why="verl logs a plugin that fails at DEBUG only, and goes on as if it were not installed",
    needs=(VERL,),
)
def load(facts: Facts) -> Finding:
    """Every plugin that verl loads can be loaded."""
    stages = [stage for stage in facts.verl.stages.values() if stage.name.startswith(PREFIX)]
    bad = [stage for stage in stages if not stage.went_well]
    if not stages:
        return skip(_why_none(facts))
    if not bad:
        return ok(", ".join(_name(stage) for stage in stages))
    report = crash if any(stage.died for stage in bad) else fail
    return report(
        "; ".join(f"{_name(stage)}: {stage.error}" for stage in bad),
        expected="each loaded without an error",
        mend=_mend(bad, stages),
        details="\n\n".join(f"{_name(stage)}:\n{stage.trace}" for stage in bad),
    )


@check(
    "plugins.owners",
    why="platform and engines must come from one package, and the wheel must be asked in time",
    needs=(VERL,),
)
def owners(facts: Facts) -> Finding:
    """Every platform belongs to the package that should own it."""
    platforms = facts.verl.data("platforms")
    if platforms is None:
        return skip(_why_none(facts))
    said = [report for report in facts.verl.data("reports") or () if report["stage"] != "checking VERL_PLATFORM"]
    owned = ", ".join(f"{name} from {found['distribution']}" for name, found in platforms.items())
    # What failed to load is told by plugins.load.
    contested = [report for report in said if not report["traceback"]]
    if contested:
        text, _, remedy = contested[0]["message"].rpartition(". ")
        return warn(
            "\n".join(report["message"] for report in contested) if len(contested) > 1 else text,
            expected="one package a name",
            mend=remedy,
            details=owned,
        )
    return ok(owned)


@check(
    "plugins.engines",
    why="verl then finds no training engine for the vendor and names the backend as unknown",
    needs=(VERL,),
)
def engines(facts: Facts) -> Finding:
    """The engines of every wheel can be imported."""
    reports = facts.verl.data("reports")
    if facts.verl.data("engines") is None or reports is None:
        return skip("verl's engines were not imported")
    bad = [report for report in reports if report["stage"].startswith("importing ")]
    if bad:
        return fail(
            "; ".join(report["message"] for report in bad),
            expected="an import without an error",
            mend=f"pip install --force-reinstall --no-deps {' '.join(dict.fromkeys(one['wheel'] for one in bad))}",
            details="\n\n".join(report["traceback"] for report in bad),
        )
    return ok("imported")


def _name(stage: Stage) -> str:
    return stage.name.removeprefix(PREFIX)


def _mend(bad: Sequence[Stage], stages: Sequence[Stage]) -> str:
    text = " ".join(stage.error for stage in bad)
    meant = re.search(r"did you mean '(\w+)'", text)
    if "VERL_PLATFORM=" in text:
        return f"export VERL_PLATFORM={meant[1]}" if meant else "unset VERL_PLATFORM"
    if "ContractMismatchError" in text or "VerlVersionError" in text:
        # With verl's requirements pip may replace the vendor's torch; packages.requirements says what else is missing.
        return text.rpartition(": ")[2].replace("pip install -U", "pip install -U --no-deps", 1)
    others = [_name(stage) for stage in stages if stage not in bad]
    leave_out = f"or leave it out: export {PLUGINS_ENVVAR}={','.join(others) or 'none'}"
    module, package = _origin(_name(bad[0]))
    missing = missing_module(bad[0].error)
    if missing is not None and missing in (module, module.partition(".")[0]):
        # Its entry point is left of a package that is gone, as an editable one whose folder was moved.
        return f"pip install --force-reinstall --no-deps {package}   # gone on purpose: pip uninstall {package}"
    return mend_of_import(text) or (
        f"reinstall {package} (traceback: verl-hw doctor --check plugins.load), {leave_out}"
    )


def _origin(name: str) -> tuple[str, str]:
    """Module and package of an entry point."""
    for point in metadata.entry_points(group=PLUGIN_GROUP):
        if point.name == name:
            return point.module, name_of(point.dist) if point.dist is not None else point.module
    return name, f"the package of {name}"


def _why_none(facts: Facts) -> str:
    dead = facts.verl.died_in
    if dead is not None:
        return f"not reached: {dead.name}: {dead.error}"
    broken = [stage for stage in facts.verl.stages.values() if not stage.went_well]
    if broken:
        return f"not reached: {broken[0].name}: {broken[0].error}"
    if facts.verl.data("verl"):
        return "verl loads no plugin here"
    return "torch or verl is not installed"
