# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Environment variables that choose a platform, an engine or the visible devices."""

from collections.abc import Iterable
from difflib import get_close_matches
from shlex import quote

from verl_hw_core.detection.lookup import look_up
from verl_hw_core.errors import VisibleDevicesError
from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_core.platform.table import PLATFORM_ENVVAR, known_wheels, nearest_platform
from verl_hw_core.platform.visible_devices import read_mask
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.known_variables import OF_VERL_HW, VALUES
from verl_hw_tools.doctor.model import Finding, fail, ok, skip, warn
from verl_hw_tools.doctor.registry import VERL, check
from verl_hw_tools.installed import is_loaded

# verl's own platforms and the device types of its engines, by their registered names (verl 0.9).
_VERL_PLATFORMS = {"nvidia": "cuda", "amd": "cuda", "huawei": "npu"}
_FALSE_WORDS = ("0", "false", "no", "off")
_NO_DEVICE = "sees no device at all"


@check(
    "environment.platform",
    why="verl takes the name as it is and finds no platform or engine, long after the start",
    needs=(VERL,),
)
def platform(facts: Facts) -> Finding:
    """VERL_PLATFORM names a platform that is there."""
    value = facts.environ.get(PLATFORM_ENVVAR, "")
    wanted = value.strip().lower()
    if not wanted:
        return ok("not set: detection decides")
    loaded = [wheel.spec for wheel in facts.wheels if wheel.spec is not None and is_loaded(wheel.name)]
    known = {name for spec in loaded for name in spec.names} | set(facts.verl.data("platforms") or _VERL_PLATFORMS)
    if wanted in known:
        return ok(f"{PLATFORM_ENVVAR}={value}")
    wheels = known_wheels()
    if wanted in wheels:
        installed = any(wheel.distribution == wheels[wanted] for wheel in facts.wheels)
        return fail(
            f"{PLATFORM_ENVVAR}={value} comes with {wheels[wanted]}, which is "
            + ("installed but not loaded" if installed else "not installed"),
            expected=f"one of {', '.join(sorted(known))}",
            mend="unset VERL_USE_EXTERNAL_PLUGINS" if installed else f"pip install {wheels[wanted]}",
        )
    near = nearest_platform(wanted, {*known, *wheels, *_VERL_PLATFORMS})
    return fail(
        f"{PLATFORM_ENVVAR}={value} names no platform",
        expected=f"one of {', '.join(sorted(known))}",
        mend=f"export {PLATFORM_ENVVAR}={near}" if near else f"unset {PLATFORM_ENVVAR}",
    )


@check(
    "environment.engine", why="with a wrong vendor verl silently takes the plain engine of the device", needs=(VERL,)
)
def engine(facts: Facts) -> Finding:
    """VERL_ENGINE_DEVICE and VERL_ENGINE_VENDOR name an engine that is there."""
    device, vendor = (facts.environ.get(f"VERL_ENGINE_{name}", "") for name in ("DEVICE", "VENDOR"))
    if not device and not vendor:
        return ok("not set: the platform decides")
    pairs = {(spec.device_name, spec.key) for spec in facts.specs}
    pairs |= {(built_in, key) for key, built_in in _VERL_PLATFORMS.items()} | {("cpu", "nvidia")}
    for row in (facts.verl.data("engines") or {"rows": ()})["rows"]:
        pairs |= {(key.partition("/")[0], key.partition("/")[2]) for key in row["registered"]}
    for name, value, known in (
        ("VERL_ENGINE_DEVICE", device, {one for one, _ in pairs}),
        ("VERL_ENGINE_VENDOR", vendor, {one for _, one in pairs if one}),
    ):
        if value and value not in known:
            near = get_close_matches(value.lower(), sorted(known), n=1)
            return fail(
                f"{name}={value} is the name of no registered engine's {name.rpartition('_')[2].lower()}",
                expected=f"one of {', '.join(sorted(known))}",
                mend=f"export {name}={near[0]}" if near else f"unset {name}",
            )
    if device and vendor and (device, vendor) not in pairs:
        return warn(
            f"VERL_ENGINE_DEVICE={device} with VERL_ENGINE_VENDOR={vendor}: no engine is registered for the pair",
            expected="a pair of one vendor",
            mend="unset VERL_ENGINE_DEVICE VERL_ENGINE_VENDOR",
        )
    return ok(f"device {device or 'of the platform'}, vendor {vendor or 'of the platform'}")


@check("environment.modules", why="verl imports these before its plugins, and a missing one ends the import of verl")
def modules(facts: Facts) -> Finding:
    """VERL_USE_EXTERNAL_MODULES names modules that are there."""
    value = facts.environ.get("VERL_USE_EXTERNAL_MODULES", "")
    names = [name for name in value.split(",") if name]
    if not names:
        return ok("not set")
    missing = [name for name in names if look_up(name.strip().partition(".")[0]).spec is None]
    if missing:
        rest = ",".join(name for name in names if name not in missing)
        return fail(
            f"VERL_USE_EXTERNAL_MODULES={value}: {', '.join(missing)} cannot be found",
            expected="modules that can be imported, on every node",
            mend=f"export VERL_USE_EXTERNAL_MODULES={rest}" if rest else "unset VERL_USE_EXTERNAL_MODULES",
        )
    ours = [wheel.module for wheel in facts.wheels if wheel.module in names]
    note = f"; {', '.join(ours)} would be loaded without it as well" if ours else ""
    return ok(f"VERL_USE_EXTERNAL_MODULES={value}{note}")


@check("environment.visible", why="a mask that the runtime reads otherwise than you do ends in other or fewer devices")
def visible(facts: Facts) -> Finding:
    """The visibility mask can be read and leaves a device."""
    judged = [facts.vendor] if facts.vendor is not None else list(facts.specs)
    said = []
    for spec in judged:
        try:
            mask = read_mask(spec, facts.environ)
        except VisibleDevicesError as error:
            report = fail if facts.vendor is not None else warn
            return report(str(error), expected="a mask of that form", mend=_correct(spec, facts, error))
        if mask.entries == ():
            return warn(
                f"{mask.source}={facts.environ[mask.source]!r}: this shell {_NO_DEVICE} of {spec.display_name}",
                expected="unset, or a list of devices",
                mend=f"unset {mask.source}   # Ray sets it for CPU-only actors and job drivers by itself",
            )
        if mask.entries is not None:
            said.append(f"{mask.source}={mask.value}: {len(mask.entries)} devices of {spec.display_name}")
    return ok("; ".join(said) or "no mask is set: all devices")


@check("environment.conflicting", why="one variable wins in silence, and which one differs by runtime and version")
def conflicting(facts: Facts) -> Finding:
    """No two visibility variables of a vendor disagree."""
    judged = [facts.vendor] if facts.vendor is not None else list(facts.specs)
    for spec in judged:
        masks = (*spec.overriding_visible_envvars, spec.visible_devices_envvar)
        there = [name for name in masks if name in facts.environ]
        if len({facts.environ[name].replace(" ", "") for name in there}) > 1:
            values = ", ".join(f"{name}={facts.environ[name]}" for name in there)
            return warn(
                f"{values}: {there[0]} wins on {spec.display_name}",
                expected="one of them",
                mend=f"unset {' '.join(there[1:])}",
            )
        beside = [name for name in spec.filtering_envvars if facts.environ.get(name)]
        if beside and spec.visible_devices_envvar in facts.environ:
            return warn(
                f"{spec.visible_devices_envvar} and {beside[0]}={facts.environ[beside[0]]} both filter the devices of "
                f"{spec.display_name}, each in its own words",
                expected=f"{spec.visible_devices_envvar} alone",
                mend=f"unset {beside[0]}",
            )
    return ok("none")


@check("environment.noset", why='"0" can mean yes; a worker without our wheel then has all devices and takes the first')
def noset(facts: Facts) -> Finding:
    """RAY_EXPERIMENTAL_NOSET_ variables say what they seem to say."""
    there = {name: facts.environ[name] for name in facts.environ if name.startswith("RAY_EXPERIMENTAL_NOSET_")}
    false = [name for name, value in there.items() if value.strip().lower() in _FALSE_WORDS]
    if false:
        return warn(
            f"{false[0]}={there[false[0]]}: for some of Ray's variables any value counts as yes",
            expected="unset, where Ray is to set the mask",
            mend=f"unset {' '.join(false)}",
        )
    if facts.vendor is not None and set(there) & set(facts.vendor.ray_noset_envvars):
        return ok(f"{', '.join(sorted(there))}: workers see all devices, and ours choose theirs by ordinal")
    return ok(", ".join(sorted(there)) or "none is set")


@check("environment.settings", why="a misspelt name is ignored, a misspelt value is an error in the middle of a run")
def settings(facts: Facts) -> Finding:
    """VERL_HW_ variables have names and values that mean something."""
    ours = [name for name in facts.environ if name.startswith("VERL_HW_")]
    for name in ours:
        if name not in OF_VERL_HW:
            near = get_close_matches(name, OF_VERL_HW, n=1)
            return warn(
                f"{name} is read by nobody",
                expected=f"one of {', '.join(OF_VERL_HW)}",
                mend=f"export {near[0]}={quote(facts.environ[name])}; unset {name}" if near else f"unset {name}",
            )
        allowed = VALUES.get(name, ())
        if allowed and facts.environ[name].strip().lower() not in allowed:
            return fail(
                f"{name}={facts.environ[name]}",
                expected=f"one of {_words(allowed)}",
                mend=f"export {name}={allowed[0]}",
            )
    spec = facts.vendor
    if spec is not None and not spec.flagcx and facts.environ.get("USE_FLAGCX", "").lower() not in ("", "0", "false"):
        return fail(
            f"USE_FLAGCX={facts.environ['USE_FLAGCX']}, and FlagCX has no adaptor for {spec.display_name}",
            expected="unset",
            mend="unset USE_FLAGCX",
        )
    return ok(", ".join(ours) or "none is set")


@check("environment.autoload", why="without it torch does not load the vendor's extension by itself")
def autoload(facts: Facts) -> Finding:
    """torch loads the vendor's extension."""
    spec = facts.vendor
    if spec is None or spec.extension_module is None:
        return skip("no vendor with an extension of torch is judged")
    if facts.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "").strip() == "0":
        return warn(
            f"TORCH_DEVICE_BACKEND_AUTOLOAD=0: verl-hw imports {spec.extension_module} itself, other code may not",
            expected="unset",
            mend="unset TORCH_DEVICE_BACKEND_AUTOLOAD",
        )
    return ok("not switched off")


def _correct(spec: HardwareSpec, facts: Facts, error: VisibleDevicesError) -> str:
    selector = next((name for name in spec.filtering_envvars if str(error).startswith(f"{name}=")), None)
    if selector is not None:
        return f"unset {selector}"
    names = (*spec.overriding_visible_envvars, spec.visible_devices_envvar)
    name = next(name for name in names if name in facts.environ)
    return f"export {name}=0,1   # the devices that you want, or: unset {name}"


def _words(names: Iterable[str]) -> str:
    return ", ".join(names)
