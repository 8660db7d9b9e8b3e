# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Every name of other packages that we replace, and every private one that we rely on: ``ledger.json``.

Tests check that each is there in the installed versions, and rename each to see what that file says happens.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """One change of somebody else's code.

    A name is written ``"module:attribute.path"``. ``Class().attribute`` is an attribute that the class's methods give
    an instance; ``; torch>=2.13`` behind a name limits it to these versions, outside of which it may be absent.

    Attributes:
        id: Short name, used in comments and by the doctor.
        targets: Every name that is replaced; of a kernel, the operator that it is registered for.
        reads: Every private name, and public one that could go, that is relied on and not replaced.
        reason: Why the public interface is not enough.
        lost: What is lost where the row cannot be applied, in one phrase.
        if_missing: What happens then beside the warning: ``warn``: the process goes on; ``refuse``: no training engine
            is built, since its numbers would be wrong; ``refuse in Ray``: the same, in Ray's workers only.
        link: The thread or the line upstream.
        removal: When the row can go.
        only_where: On which devices, models or settings it is applied; empty for every training run.
        more_targets: ``"module:function"`` that returns further targets, where packages declare them.
        may_be_absent: The targets are names that the module's code reads and may not have, until we set them.
        applied_by: ``"module:function"`` that applies the row without arguments, where nothing but the chosen platform
            decides how. A reference that arrives from a process in which the row is in force calls it.
        hook: Name of a hook of the platform in a later verl that makes the row, or a part of it, unnecessary.
        with_hook: What happens with it; without it the row is applied as the other fields say.
    """

    id: str
    targets: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    reason: str
    lost: str
    if_missing: Literal["warn", "refuse", "refuse in Ray"] = "warn"
    link: str
    removal: str
    only_where: str = ""
    more_targets: str = ""
    may_be_absent: bool = False
    applied_by: str = ""
    hook: str = ""
    with_hook: str = ""


def _read() -> tuple[LedgerRow, ...]:
    rows: list[dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))["rows"]
    return tuple(LedgerRow(**{**row, **{key: tuple(row.get(key, ())) for key in ("targets", "reads")}}) for row in rows)


LEDGER = _read()
"""The rows of ``ledger.json``, in its order."""
