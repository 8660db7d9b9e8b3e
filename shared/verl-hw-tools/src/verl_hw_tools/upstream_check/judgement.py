# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Each row of the patch registry against one verl: it fits, a name of it moved, or one is gone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from verl_hw_core.upstream import LEDGER, LedgerRow
from verl_hw_core.upstream.installed_state import distribution
from verl_hw_tools.upstream_check.names import Names
from verl_hw_tools.upstream_check.source import VerlSource


class Verdict(str, Enum):
    """What became of a name, or of a row: the worst of its names."""

    FITS = "fits"
    MOVED = "moved"
    GONE = "gone"


@dataclass(frozen=True)
class JudgedName:
    """One name of a row.

    Attributes:
        name: As the row declares it, without versions.
        use: ``"target"`` where it is replaced, ``"read"`` where it is relied on.
        verdict: What became of it.
        found_in: Modules that define it now, where it moved.
    """

    name: str
    use: str
    verdict: Verdict
    found_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgedRow:
    """One row.

    Attributes:
        row: The row.
        names: Its names of verl; empty for a row that names other packages only.
        others: The packages of its other names, which are not judged.
        has_hook: Whether this verl has the platform hook that the row names.
    """

    row: LedgerRow
    names: tuple[JudgedName, ...]
    others: tuple[str, ...]
    has_hook: bool

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict on its names; None where none of them is verl's."""
        found = {name.verdict for name in self.names}
        return next((one for one in (Verdict.GONE, Verdict.MOVED, Verdict.FITS) if one in found), None)

    @property
    def consequence(self) -> str:
        """What happens with this verl: ``""`` where the row fits, ``"lost"``, ``"refused"`` or ``"refused in Ray"``."""
        if self.verdict in (None, Verdict.FITS):
            return ""
        return {"warn": "lost", "refuse": "refused", "refuse in Ray": "refused in Ray"}[self.row.if_missing]


def judge(
    source: VerlSource, baseline: VerlSource | None = None, rows: Sequence[LedgerRow] = LEDGER
) -> tuple[JudgedRow, ...]:
    """Judge every row against a verl.

    Args:
        source: The verl.
        baseline: One in which the rows were read: a module that defines a name there too is not where it moved to.
        rows: The rows.

    Raises:
        VerlSourceError: A module of it cannot be parsed.
    """
    names = Names(source)
    before = None if baseline is None else Names(baseline)
    return tuple(_row(row, names, before) for row in rows)


def _row(row: LedgerRow, names: Names, before: Names | None) -> JudgedRow:
    declared = [(one, "target") for one in row.targets] + [(one, "read") for one in row.reads]
    ours = [(one, use) for one, use in declared if distribution(one) == "verl"]
    others = dict.fromkeys(distribution(one) for one, _ in declared if distribution(one) != "verl")
    if row.more_targets:  # declared by packages while they run, in transformers' modules
        others.setdefault("transformers")
    return JudgedRow(
        row,
        tuple(_name(one, use, names, before) for one, use in _of_version(ours, names.source.version)),
        tuple(others),
        bool(row.hook) and names.has(row.hook),
    )


def _of_version(declared: Sequence[tuple[str, str]], version: str) -> Iterator[tuple[str, str]]:
    """Names without the versions behind them, those of other versions than this one left out."""
    for name, use in declared:
        bare, _, versions = name.partition("; ")
        try:
            applies = not versions or Requirement(versions).specifier.contains(Version(version), prereleases=True)
        except InvalidVersion:
            applies = True
        if applies:
            yield bare, use


def _name(name: str, use: str, names: Names, before: Names | None) -> JudgedName:
    if names.has(name, own=use == "target"):
        return JudgedName(name, use, Verdict.FITS)
    known = () if before is None else before.defined_in(name)
    found = tuple(module for module in names.defined_in(name) if module not in known)
    return JudgedName(name, use, Verdict.MOVED if found else Verdict.GONE, found)
