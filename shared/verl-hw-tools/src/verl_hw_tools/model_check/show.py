# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A report for people."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from verl_hw_tools.model_check.results import Finding, Report, Status

_STYLES = {Status.OK: "green", Status.FAIL: "bold red", Status.SKIP: "dim"}
_SHOWN = 8


def show_report(report: Report, console: Console) -> None:
    """Print what was compared, and the verdict."""
    device = f"a simulated {report.device}" if report.simulated else report.device
    console.print(
        f"{escape(report.hf_class)} (model_type {escape(report.model_type)}), bridge {escape(report.bridge)}, float32: "
        f"Megatron on {device} ({report.vendor}), Hugging Face on the CPU",
        highlight=False,
        soft_wrap=True,
    )
    if report.sizes:
        small = ", ".join(f"{name} {before} to {after}" for name, (before, after) in report.sizes.items())
        console.print(f"Made small: {escape(small)}", highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for heading in ("", "comparison", "largest difference", "found"):
        table.add_column(heading, overflow="fold")
    for finding in report.findings:
        table.add_row(
            f"[{_STYLES[finding.status]}]{finding.status.value}[/]", finding.name, _worst(finding), _text(finding)
        )
    console.print(table)
    failed = sum(finding.status is Status.FAIL for finding in report.findings)
    console.print(
        f"Not the same model: {failed} of {len(report.findings)} comparisons failed"
        if failed
        else f"The same model, to {report.tolerance:g} of each tensor's largest value",
        style=_STYLES[Status.FAIL if failed else Status.OK],
        highlight=False,
    )


def _worst(finding: Finding) -> str:
    return "" if finding.worst is None else f"{finding.worst:.1e}"


def _text(finding: Finding) -> str:
    named = [name for name in finding.tensors if name not in finding.observed]
    if not named:
        return escape(finding.observed)
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return escape(f"{finding.observed}: {', '.join(named[:_SHOWN])}{more}")
