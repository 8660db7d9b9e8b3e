# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``module``: the names of ``torch.<device>`` that verl asks for, one check each."""

from verl_hw_core.platform.vendor_module import ESSENTIAL, OPTIONAL
from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.registry import Check, CheckFunction, add
from verl_hw_tools.conformance.verdicts import CheckFailed, CheckWarned


def _has(name: str, essential: bool) -> CheckFunction:
    def run(bench: Bench) -> None:
        if hasattr(bench.module, name):
            return
        verdict = CheckFailed if essential else CheckWarned
        raise verdict(f"torch.{bench.type} has no {name}", f"torch.{bench.type}.{name}")

    return run


for _names, _essential in ((ESSENTIAL, True), (OPTIONAL, False)):
    for _name, _cost in _names.items():
        add(
            Check(
                id=f"module.{_name.lower()}_class" if _name[0].isupper() else f"module.{_name}",
                title=f"torch.<device>.{_name} is there",
                blocks=_cost,
                run=_has(_name, _essential),
            )
        )
