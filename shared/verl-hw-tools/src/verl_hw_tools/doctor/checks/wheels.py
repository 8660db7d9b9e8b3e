# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The vendor wheels: installed, whole, fitting the core, and not left out."""

from collections import defaultdict
from difflib import get_close_matches
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from verl_hw_core.detection import Verdict
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.model import Finding, fail, ok, skip, warn
from verl_hw_tools.doctor.registry import check
from verl_hw_tools.doctor.versions import installed_version, requirements_of
from verl_hw_tools.installed import (
    CORE_DISTRIBUTION,
    PLUGIN_GROUP,
    PLUGINS_ENVVAR,
    TOOLS_DISTRIBUTION,
    is_loaded,
    name_of,
)


@check("wheels.installed", why="without a vendor wheel verl knows NVIDIA, AMD and Ascend only")
def installed(facts: Facts) -> Finding:
    """A vendor wheel is installed."""
    if facts.wheels:
        return ok(", ".join(f"{wheel.distribution} {wheel.version}" for wheel in facts.wheels))
    return warn("none is installed", expected="the wheel of your hardware", mend="pip install verl-hw-<vendor>")


@check("wheels.facts", why="a wheel whose facts do not load is asked by nobody")
def facts_of_wheels(facts: Facts) -> Finding:
    """The facts of every wheel can be read."""
    broken = [wheel for wheel in facts.wheels if wheel.problem is not None]
    if broken:
        return fail(
            "; ".join(f"{wheel.distribution} {wheel.version}: {wheel.problem}" for wheel in broken),
            expected="a spec.py that defines SPEC",
            mend=f"pip install --force-reinstall --no-deps {' '.join(wheel.distribution for wheel in broken)}",
        )
    return ok(f"{len(facts.wheels)} read") if facts.wheels else skip("no vendor wheel is installed")


@check("wheels.contract", why="a wheel made for another core fails while it registers, or later in training")
def contract(facts: Facts) -> Finding:
    """Core, tools, verl and the wheels are within each other's bounds."""
    wrong: list[tuple[str, str]] = []
    for package in (*(wheel.distribution for wheel in facts.wheels), TOOLS_DISTRIBUTION):
        for requirement in _bounds(package):
            version = installed_version(requirement.name) or ""
            # A vendor's build of verl carries a local part, and pre-releases count as what they lead to.
            if not requirement.specifier.contains(version.partition("+")[0], prereleases=True):
                needs = f"{package} {installed_version(package)} wants {requirement.name}{requirement.specifier}"
                wrong.append((f"{needs}, found {version}", f"{requirement.name}{requirement.specifier}"))
    if wrong:
        wanted = " ".join(f"'{bound}'" for bound in dict.fromkeys(bound for _, bound in wrong))
        return fail(
            "; ".join(text for text, _ in wrong),
            expected="versions within the bounds",
            mend=f"pip install --no-deps {wanted}",
        )
    return ok("all bounds are met") if facts.wheels else skip("no vendor wheel is installed")


@check("wheels.filtered", why="a name that fits nothing turns every plugin off without a word")
def filtered(facts: Facts) -> Finding:
    """VERL_USE_EXTERNAL_PLUGINS leaves no wheel out that is needed."""
    setting = facts.environ.get(PLUGINS_ENVVAR)
    if setting is None or setting.strip().lower() == "auto":
        return ok("every plugin is loaded")
    known = {point.name for point in metadata.entry_points(group=PLUGIN_GROUP)}
    asked = [name.strip() for name in setting.strip().lower().split(",") if name.strip() not in ("", "none")]
    unknown = [name for name in asked if name not in known]
    left_out = [wheel for wheel in facts.wheels if not is_loaded(wheel.name)]
    said = f"{PLUGINS_ENVVAR}={setting}; filtered out: {', '.join(wheel.name for wheel in left_out) or 'none'}"
    if unknown:
        right = [_entry_point_for(name, facts, known) or name for name in asked]
        return fail(
            f"{said}; {', '.join(map(repr, unknown))} is the name of no entry point",
            expected=f"names among {', '.join(sorted(known))}",
            mend=f"export {PLUGINS_ENVVAR}={','.join(right)}" if set(right) <= known else f"unset {PLUGINS_ENVVAR}",
        )
    missing = [wheel for wheel in left_out if wheel.spec is not None and _is_present(facts, wheel.spec.key)]
    if missing:
        return fail(
            f"{said}; the hardware of {missing[0].name} is here",
            expected="its wheel loaded",
            mend=f"export {PLUGINS_ENVVAR}={','.join([*asked, missing[0].name])}",
        )
    return ok(said)


@check("wheels.twins", why="platform and engines would come from two packages, with the last one loaded in force")
def twins(facts: Facts) -> Finding:
    """No two packages bring the same plugin."""
    owners = defaultdict(set)
    for point in metadata.entry_points(group=PLUGIN_GROUP):
        owners[point.name].add(canonicalize_name(name_of(point.dist)) if point.dist is not None else point.value)
    double = {name: sorted(packages) for name, packages in owners.items() if len(packages) > 1}
    ours = {wheel.distribution for wheel in facts.wheels}
    if double:
        packages = next(iter(double.values()))
        others = [package for package in packages if package not in ours] or packages[1:]
        return fail(
            "; ".join(f"entry point {name!r} comes from {' and '.join(found)}" for name, found in double.items()),
            expected="one package a name",
            mend=f"pip uninstall {others[0]}",
        )
    return ok(f"{len(owners)} plugins, each from one package")


def _bounds(distribution: str) -> list[Requirement]:
    if installed_version(distribution) is None:  # the tools run from a source tree
        return []
    wanted = (CORE_DISTRIBUTION, TOOLS_DISTRIBUTION, "verl")
    installed_ones = {name for name in wanted if installed_version(name) is not None}
    return [
        one
        for one in requirements_of(metadata.distribution(distribution))
        if canonicalize_name(one.name) in installed_ones and one.marker is None
    ]


def _entry_point_for(name: str, facts: Facts, known: set[str]) -> str | None:
    """The entry point that somebody means who writes a distribution's, module's or alias's name."""
    if name in known:
        return name
    for wheel in facts.wheels:
        names = {wheel.distribution, wheel.module, wheel.distribution.replace("-", "_")}
        if name in names or (wheel.spec is not None and name in wheel.spec.names):
            return wheel.name
    near = get_close_matches(name, sorted(known), n=1)
    return near[0] if near else None


def _is_present(facts: Facts, key: str) -> bool:
    return facts.survey.findings[key].verdict is Verdict.PRESENT
