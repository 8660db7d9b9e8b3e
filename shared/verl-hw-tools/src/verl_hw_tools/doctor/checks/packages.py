# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Packages beside torch: what verl's requirements say, what is missing, what only pretends to be there."""

from collections.abc import Sequence
from importlib import metadata
from shlex import quote

from packaging.utils import canonicalize_name

from verl_hw_core.detection.lookup import look_up
from verl_hw_core.platform.flags import env_flag
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.model import Finding, crash, fail, ok, skip, warn
from verl_hw_tools.doctor.registry import FULL, check
from verl_hw_tools.doctor.versions import Conflict, conflicts, installed_version, opposed, required_names
from verl_hw_tools.installed import CORE_DISTRIBUTION, TOOLS_DISTRIBUTION

_JUDGED = ("tensordict", "transformers", "ray", "accelerate", "torch", "vllm", "sglang")
# Import names that tools of ports to other chips like to fake, with their distributions.
_OFTEN_FAKED = {
    "flash_attn": ("flash-attn", "flash_attn"),
    "vllm": ("vllm",),
    "triton": ("triton",),
    "transformer_engine": ("transformer-engine", "transformer_engine"),
    "apex": ("apex",),
    "cupy": ("cupy", "cupy-cuda12x", "cupy-cuda13x"),
}
_NOT_HERE = "no hardware of an installed vendor is here"


@check("packages.requirements", why="verl fails later, with an error that does not name the version")
def requirements(facts: Facts) -> Finding:
    """What verl and the vendor wheels require is installed."""
    ours = ["verl", CORE_DISTRIBUTION, TOOLS_DISTRIBUTION, *(wheel.distribution for wheel in facts.wheels)]
    # Core, tools and verl have a check of their own: wheels.contract.
    hard = conflicts(ours, besides=("verl", CORE_DISTRIBUTION, TOOLS_DISTRIBUTION))
    soft = conflicts(_JUDGED)
    if not hard and not soft:
        return ok(f"no conflict among the requirements of {', '.join([*ours, *_JUDGED])}")
    # What is there fits verl and the wheels, and another package wants what does not: to follow it would break verl.
    kept = [] if hard else [one for one in soft if _is_required(one, ours)]
    found = hard or [one for one in soft if one not in kept] or kept
    others = opposed(hard, _JUDGED)
    notes = "".join(f"; but {one.wish}: verl's has to win, so take a release of it that allows it" for one in others)
    wanted = dict.fromkeys(f"'{one.requirement.name}{one.requirement.specifier}'" for one in found)
    report = fail if hard else warn
    return report(
        "; ".join(map(str, found)) + notes,
        expected="each requirement met",
        # Without --no-deps pip may replace the vendor's torch.
        mend=_keep(kept[0]) if found is kept else f"pip install --no-deps {' '.join(wanted)}",
        details="\n".join(map(str, [*hard, *soft])),
    )


def _is_required(one: Conflict, packages: Sequence[str]) -> bool:
    return any(canonicalize_name(one.requirement.name) in required_names(package) for package in packages)


def _keep(one: Conflict) -> str:
    return (
        f"leave {one.requirement.name} {one.found}, which verl needs, and take a build of "
        f"{one.package.partition(' ')[0]} that allows it"
    )


@check("packages.faked", why="verl takes the name for the real thing and fails inside it, far from the cause")
def faked(_facts: Facts) -> Finding:
    """Packages are whole: none is a leftover of a shim or of an uninstall."""
    empty, nameless = [], []
    for module, distributions in _OFTEN_FAKED.items():
        importable = look_up(module).spec is not None
        names = [name for name in distributions if installed_version(name) is not None]
        if importable and not names and not _belongs_to_some(module):
            nameless.append(module)
        elif names and not importable:
            empty.append(names[0])
    if not nameless and not empty:
        return ok("none of the names that ports like to fake")
    said = [f"module {name} belongs to no installed package: a stub of a migration tool" for name in nameless]
    said += [f"package {name} is installed without its module" for name in empty]
    mend = _put_aside(nameless[0]) if nameless else f"pip uninstall {' '.join(empty)}"
    return warn("; ".join(said), expected="a module with its package, or neither", mend=mend)


@check("packages.rollout", why="reinforcement learning generates with vLLM or SGLang; fine-tuning (SFT) needs neither")
def rollout(facts: Facts) -> Finding:
    """A rollout engine is installed."""
    found = {name: installed_version(name) for name in ("vllm", "sglang")}
    there = [f"{name} {version}" for name, version in found.items() if version is not None]
    if there:
        return ok(", ".join(there))
    if not facts.present:
        return skip(f"neither vllm nor sglang; {_NOT_HERE}")
    return warn(
        "neither vllm nor sglang is installed: only fine-tuning (SFT) works",
        expected="the vendor's vllm or sglang",
        mend="use the vendor's image with vLLM, or install the vendor's vllm with pip install --no-deps <wheel>",
    )


@check("packages.attention", why="without flash_attn verl-hw takes SDPA, packs fewer model families and is slower")
def attention(facts: Facts) -> Finding:
    """Flash attention, or what its absence means."""
    version = installed_version("flash-attn") or installed_version("flash_attn")
    if version is not None:
        return ok(f"flash-attn {version}")
    if look_up("flash_attn").spec is not None:
        return ok("flash_attn can be found (packages.faked judges it)")
    text = "flash_attn is not installed: the engines of verl-hw choose SDPA, and padding removal where it is right"
    return ok(text) if facts.vendor is not None else skip("flash_attn is not installed; no vendor is judged")


@check(
    "packages.megatron",
    why="backend=megatron needs it; verl says 'Unknown backend: megatron' for any error below",
    needs=(FULL,),
)
def megatron(facts: Facts) -> Finding:
    """Megatron can be imported where it is installed, with Transformer Engine."""
    if look_up("megatron").spec is None and installed_version("megatron-core") is None:
        return skip("megatron is not installed: backend=megatron is not available, fsdp and fsdp2 are")
    core = facts.verl.stages.get("megatron.core")
    if core is None and not facts.verl_was_imported:
        return skip("megatron is installed; it was not imported, since verl was not")
    if core is None:
        return fail(
            "megatron is installed without megatron.core",
            expected="megatron-core",
            mend="pip install --no-deps megatron-core",
        )
    if not core.went_well:
        report = crash if core.died else fail
        return report(
            f"import megatron.core: {core.error}",
            expected="an import without an error",
            mend="reinstall megatron-core from the vendor's image",
            details=core.trace,
        )
    engine = facts.verl.stages.get("transformer_engine")
    if engine is None:
        return ok("megatron.core imports; without Transformer Engine, so that Megatron's own torch modules are used")
    if not engine.went_well:
        report = crash if engine.died else fail
        return report(
            f"import transformer_engine: {engine.error}",
            expected="an import without an error",
            mend="reinstall the vendor's transformer_engine, or uninstall it and train with strategy=fsdp2",
            details=engine.trace,
        )
    return ok("megatron.core and transformer_engine import")


@check("packages.overrides", why="replaced operators have shifted accuracy, zeroed gradients and ended rollout engines")
def overrides(facts: Facts) -> Finding:
    """No operator library replaces torch's operators unasked."""
    wanted, refused = facts.environ.get("VLLM_FL_FLAGOS_WHITELIST"), facts.environ.get("VLLM_FL_FLAGOS_BLACKLIST")
    if wanted and refused:
        return fail(
            "VLLM_FL_FLAGOS_WHITELIST and VLLM_FL_FLAGOS_BLACKLIST are both set",
            expected="one of the two: they exclude each other",
            mend="unset VLLM_FL_FLAGOS_WHITELIST",
        )
    if env_flag("TRAINING_FL_FLAGGEMS_ENABLE") and look_up("flag_gems").spec is not None:
        return warn(
            f"TRAINING_FL_FLAGGEMS_ENABLE is set and flag_gems {installed_version('flag_gems') or ''} is installed",
            expected="torch's own operators in training until your model's numbers are checked",
            mend="unset TRAINING_FL_FLAGGEMS_ENABLE   # or compare: verl-hw check --only operators",
        )
    return ok("none is switched on")


def _put_aside(module: str) -> str:
    """Moved, and not removed: it may be somebody's checkout on PYTHONPATH."""
    spec = look_up(module).spec
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    place = quote(folders[0] if folders else str(spec.origin if spec is not None else module))
    return f"mv {place} {place}.aside"


def _belongs_to_some(module: str) -> bool:
    return bool(metadata.packages_distributions().get(module))
