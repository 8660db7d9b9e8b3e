# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The vendor's torch extension, its devices and its collective library, as a process really gets them."""

from verl_hw_core.errors import VisibleDevicesError
from verl_hw_core.platform.vendor_module import ESSENTIAL, OPTIONAL
from verl_hw_core.platform.visible_devices import Mask, check_count, read_mask
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.mends import mend_of_import
from verl_hw_tools.doctor.model import Finding, crash, fail, ok, skip
from verl_hw_tools.doctor.registry import VERL, check

_NO_HARDWARE = "no hardware of an installed vendor is here"


@check("runtime.devices", why="Ray and verl count on as many devices as the mask names", needs=(VERL,))
def devices(facts: Facts) -> Finding:
    """The vendor's runtime shows the devices that the mask names."""
    spec = facts.vendor
    if spec is None or not facts.present:
        return skip(_NO_HARDWARE)
    stage = facts.verl.stages.get("runtime")
    if stage is None:
        return skip("not reached: see python.torch and plugins.load")
    if not stage.went_well:
        report = crash if stage.died else fail
        by_hand = f"python -c 'import torch, {spec.extension_module or 'verl'}'"
        return report(
            f"starting torch.{spec.device_name}: {stage.error}",
            expected="a runtime that answers",
            mend=mend_of_import(stage.error) or f"{by_hand}   # and repair the driver or the vendor's torch stack",
            details=stage.trace,
        )
    count, names = stage.data["count"], ", ".join(sorted(set(stage.data["names"])))
    try:
        mask = read_mask(spec, facts.environ)
    except VisibleDevicesError as error:
        return skip(f"the mask cannot be read, see environment.visible: {error}")
    if count == 0 and mask.entries != ():
        return fail(
            f"torch.{spec.device_name} shows no device" + (f" of {mask.source}={mask.value}" if mask.entries else ""),
            expected="a device",
            mend="check the driver with the vendor's management tool, and the container's --device options",
        )
    try:
        check_count(mask, count)
    except VisibleDevicesError as error:
        return fail(
            str(error),
            expected="as many devices as the mask names",
            mend=_shorter(mask, count),
        )
    where = "SIMULATED: " if facts.simulated else ""
    return ok(f"{where}{count} x {names or spec.display_name} (torch.{spec.device_name}); {mask.source}={mask.value}")


def _shorter(mask: Mask, count: int) -> str:
    """The first ones are known to be there; which of "4,5" is not must be looked up, and 0 may be somebody else's."""
    if mask.entries == tuple(map(str, range(len(mask.entries or ())))):
        return f"export {mask.source}={','.join(map(str, range(count)))}   # the devices that are there"
    return f"unset {mask.source}   # or name devices that the vendor's management tool shows"


@check("runtime.collectives", why="verl opens its process groups with this backend", needs=(VERL,))
def collectives(facts: Facts) -> Finding:
    """torch knows the vendor's collective backend."""
    data = facts.verl.data("runtime")
    if facts.vendor is None or data is None:
        return skip(_NO_HARDWARE if not facts.present else "the runtime did not start: see runtime.devices")
    if not data["ccl_known"]:
        module = facts.vendor.extension_module or "the vendor's torch"
        return fail(
            f"torch.distributed has no backend {data['ccl']!r} (it has {', '.join(data['backends']) or 'none'})",
            expected=f"{data['ccl']}, which {module} brings",
            mend=f"install the vendor's torch stack with {data['ccl']}; until then one device works: n_gpus_per_node=1",
        )
    return ok(data["ccl"])


@check("runtime.module", why="verl asks torch.<device> for these names without looking first", needs=(VERL,))
def module(facts: Facts) -> Finding:
    """torch.<device> has the names that verl asks for."""
    data = facts.verl.data("runtime")
    if facts.vendor is None or data is None:
        return skip(_NO_HARDWARE if not facts.present else "the runtime did not start: see runtime.devices")
    essential, optional = data["missing_essential"], data["missing_optional"]
    costs = "\n".join(f"{name}: {(ESSENTIAL | OPTIONAL)[name]}" for name in [*essential, *optional])
    if essential:
        return fail(
            f"torch.{facts.vendor.device_name} lacks {', '.join(essential)}",
            expected="every name without which training does not start",
            mend="upgrade the vendor's torch stack; the suite shows what else is missing: verl-hw check",
            details=costs,
        )
    if optional:
        return ok(f"all that training needs; without {', '.join(optional)} (verl-hw goes on without)", details=costs)
    return ok("all of them")
