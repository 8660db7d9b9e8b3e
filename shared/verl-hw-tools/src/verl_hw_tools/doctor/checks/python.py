# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Python, torch and the versions of what verl runs on."""

from verl_hw_core.detection.lookup import look_up
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.model import Finding, crash, fail, ok, skip, warn
from verl_hw_tools.doctor.registry import VERL, check
from verl_hw_tools.doctor.versions import installed_version, version_table

# Local parts of the version that torch's own index gives its builds.
_STOCK = ("cu", "cpu", "rocm")


@check("python.torch", why="nothing of verl works without torch", needs=(VERL,))
def torch(facts: Facts) -> Finding:
    """torch is installed and can be imported."""
    if look_up("torch").spec is None:
        return fail("torch is not installed here", expected="torch", mend=_get_torch(facts.vendor))
    stage = facts.verl.stages.get("torch") or facts.verl.stages.get("start")
    if stage is None:
        return ok(f"torch {installed_version('torch')} is installed")
    if stage.went_well:
        return ok(f"torch {stage.data['version']} ({stage.data['file']})")
    report = crash if stage.died else fail
    return report(
        f"import torch: {stage.error}",
        expected="an import without an error",
        mend="unset VERL_HW_SIM   # or mend what the simulator says"
        if facts.simulated
        else f"reinstall torch: {_get_torch(facts.vendor)}",
        details=stage.trace,
    )


@check(
    "python.torch_build", why="an install that pulls stock torch over the vendor's leaves a torch without the device"
)
def torch_build(facts: Facts) -> Finding:
    """The installed torch is the vendor's build."""
    spec = facts.vendor
    if spec is None or not facts.present or facts.finding is None:
        return skip("no hardware of an installed vendor is here")
    evidence = next((item for item in facts.finding.evidence if item.kind == "torch_build"), None)
    if evidence is None or evidence.verdict.value == "unknown" or look_up("torch").spec is None:
        return skip(evidence.why if evidence is not None else f"{spec.display_name} leaves no mark in its torch")
    if evidence.verdict.value == "present":
        return ok(evidence.why)
    if facts.simulated:
        return skip("the devices are simulated on a stock torch")
    runtime = facts.verl.data("runtime")
    if runtime is not None and runtime["count"]:
        return ok(f"{evidence.why}, and it works: {runtime['count']} devices")
    stock = _is_stock(installed_version("torch") or "")
    extension = spec.extension_module
    if extension is not None and look_up(extension).spec is not None:
        return warn(
            f"{evidence.why}; its extension {extension} is installed",
            expected=f"the torch that {extension} was built for",
            mend=_get_torch(spec),
        )
    return fail(
        f"{evidence.why}" + (": a stock build has replaced the vendor's, or was never replaced by it" if stock else ""),
        expected=f"the torch build of {spec.display_name}",
        mend=_get_torch(spec),
    )


@check("python.versions", why="another release may work and nobody has tried it")
def versions(_facts: Facts) -> Finding:
    """Versions are among those that verl-hw was run with."""
    good, untried, refused = [], [], []
    for row in version_table():
        version = installed_version(row.name)
        if version is None:
            continue  # a check of its own says so
        text = f"{row.name} {version}"
        if not row.allows(version):
            bounds = ",".join(
                part for part in (row.floor and f">={row.floor}", row.ceiling and f"<{row.ceiling}") if part
            )
            refused.append((text, f"{row.name}{bounds}"))
        elif row.covers(version):
            good.append(text)
        else:
            untried.append(f"{text} (tried: {', '.join(row.tested)})")
    if refused:
        return fail(
            ", ".join(text for text, _ in refused) + ": cannot work",
            expected=", ".join(bounds for _, bounds in refused),
            mend=_install([bounds for _, bounds in refused]),
        )
    if untried:
        return warn(
            "not tried: " + ", ".join(untried),
            expected="a release series that verl-hw was run with",
            mend="verl-hw check   # tries your devices; a problem with these versions is worth a report",
        )
    return ok(", ".join(good))


def _get_torch(spec: HardwareSpec | None) -> str:
    if spec is None:
        return "pip install torch   # or the vendor's build, from the vendor's image"
    tag = spec.traces.torch_version_tag or "vendor's"
    return f"use the vendor's image, or pip install --no-deps <the vendor's torch wheel, {tag!r} in its version>"


def _is_stock(version: str) -> bool:
    local = version.partition("+")[2]
    return not local or local.startswith(_STOCK)


def _install(bounds: list[str]) -> str:
    packages = [bound for bound in bounds if not bound.startswith(("python", "torch>", "torch<"))]
    if not packages:
        return "use another image or environment: neither Python nor the vendor's torch is changed by pip"
    # Without --no-deps pip may replace the vendor's torch.
    return "pip install --no-deps " + " ".join(f"'{bound}'" for bound in packages)
