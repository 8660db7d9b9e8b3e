# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m verl_hw_tools.conformance.survey_process VENDOR FILE GROUP...``: look at the devices and at the checks.

In a process of its own because both need torch: the command stays fast and survives a stack that crashes on start.
"""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from verl_hw_tools.conformance import registry
from verl_hw_tools.conformance.survey import ListedCheck, Survey


def main(vendor: str, path: Path, group_names: list[str]) -> None:
    """Look at the devices of ``vendor``, if one is given, and at the checks; write a :class:`Survey` to ``path``."""
    known = registry.groups()
    checks: list[ListedCheck] = []
    broken = {}
    for name in group_names:
        try:
            found = registry.load(known[name])
        except Exception as error:  # noqa: BLE001 - another package's module; the error becomes a result
            broken[name] = f"{type(error).__name__}: {error}"
            continue
        checks += [
            ListedCheck(id=check.id, title=check.title, blocks=check.blocks, processes=check.processes)
            for check in found
            if not vendor or not check.vendors or vendor in check.vendors
        ]
    names, versions = _devices(vendor) if vendor else ((), {})
    Survey(device_names=names, versions=versions, checks=tuple(checks), broken=broken).write(path)


def _devices(vendor: str) -> tuple[tuple[str, ...], dict[str, str]]:
    import torch

    from verl_hw_core.platform import vendor_module
    from verl_hw_tools.installed import CORE_DISTRIBUTION, find_wheel, installed_wheels

    wheel = find_wheel(vendor, installed_wheels())
    if wheel.spec is None:
        raise AssertionError("find_wheel returns no wheel without facts")
    module = vendor_module.device_module(wheel.spec)
    label = wheel.spec.display_name
    names = tuple(
        str(vendor_module.call(wheel.spec, "get_device_name", ordinal, fallback=label, loud=False))
        for ordinal in range(int(module.device_count()))
    )
    versions = {"python": platform.python_version(), "torch": torch.__version__, wheel.distribution: wheel.version}
    for distribution in (CORE_DISTRIBUTION, "verl"):
        try:
            versions[distribution] = version(distribution)
        except PackageNotFoundError:
            versions[distribution] = "not installed"
    return names, versions


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
