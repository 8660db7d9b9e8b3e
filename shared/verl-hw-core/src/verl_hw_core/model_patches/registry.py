# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Applying patches before a model is built, recording them, and taking them back."""

import logging
import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

from verl_hw_core import upstream
from verl_hw_core.errors import ModelPatchError
from verl_hw_core.model_patches import declarations
from verl_hw_core.model_patches.targets import SITES, Site
from verl_hw_core.upstream import installed_state

logger = logging.getLogger("verl_hw_core")

ROW = "model-patches"
"""Ledger row of the replacements."""

MODE_ENV = "VERL_HW_MODEL_PATCHES"
Mode = Literal["auto", "portable", "off"]


@dataclass(frozen=True)
class Applied:
    """One replacement that is in force.

    Attributes:
        vendor: Platform key that it was applied for.
        model_type: HF model type that it was first applied for.
        target: ``"module:attribute.path"`` of what is replaced.
        kind: ``fused`` (a vendor's kernel), ``portable`` (torch operations) or ``patch`` (as declared).
        what: The kernel, or the reason of the patch.
    """

    vendor: str
    model_type: str
    target: str
    kind: Literal["fused", "portable", "patch"]
    what: str


_applied: dict[str, Applied] = {}
_said: set[str] = set()


def mode() -> Mode:
    """Return what ``VERL_HW_MODEL_PATCHES`` asks for.

    Raises:
        ModelPatchError: It asks for something else.
    """
    asked = os.environ.get(MODE_ENV, "").strip().lower() or "auto"
    for known in get_args(Mode):
        if asked == known:
            return known  # type: ignore[no-any-return]
    raise ModelPatchError(f"{MODE_ENV}={asked!r} must be one of {', '.join(get_args(Mode))}")


def apply(vendor: str, device: str, model_type: str) -> tuple[Applied, ...]:
    """Apply what is declared for a platform key and HF model type, and return what is newly in force.

    What is in force already stays as it is. Fused kernels are checked on ``device``, a torch device type.

    Raises:
        ModelPatchError: ``VERL_HW_MODEL_PATCHES`` holds an unknown value, or a patch's target does not exist.
    """
    before = set(_applied)
    wanted = mode()
    if wanted == "off":
        return ()
    for patch in declarations.patches(vendor, model_type):
        _put(Applied(vendor, model_type, patch.target, "patch", patch.reason), patch.replacement, required=True)
    for site in SITES:
        if site.model_type == model_type:
            _apply_site(site, vendor, device, wanted)
    return tuple(record for target, record in _applied.items() if target not in before)


def applied() -> tuple[Applied, ...]:
    """Return what is in force in this process, in the order in which it was applied."""
    return tuple(_applied.values())


def revert() -> None:
    """Put transformers' own code back everywhere."""
    upstream.restore(ROW)
    _applied.clear()


def _apply_site(site: Site, vendor: str, device: str, wanted: Mode) -> None:
    if wanted == "portable":
        from verl_hw_core.model_patches.operations import PORTABLE, for_model

        record = Applied(vendor, site.model_type, site.target, "portable", "torch operations")
        _put(record, for_model(site.operation, PORTABLE[site.operation]))
        return
    for fused in declarations.fused_ops(vendor, site.operation):
        from verl_hw_core.model_patches.gradient_check import usable_form
        from verl_hw_core.model_patches.operations import for_model

        form, why = usable_form(fused, device)
        _say_once(f"Model patches: {why}" + ("" if form else "; transformers' own code is used instead"), form is None)
        if form is not None:
            _put(Applied(vendor, site.model_type, site.target, "fused", fused.kernel), for_model(site.operation, form))
            return


def _put(record: Applied, replacement: Any, required: bool = False) -> None:
    """Replace a target unless that is done; one that this transformers lacks is an error if it was asked for."""
    if record.target in _applied:
        return
    try:
        upstream.replace(ROW, *installed_state.place(record.target), replacement)
    except (ImportError, AttributeError, LookupError) as error:
        if not required:
            _say_once(f"Model patches: the installed transformers has no {record.target}: it is left out", warn=True)
            return
        raise ModelPatchError(
            f"the installed transformers has no {record.target}, which a model patch for {record.model_type} replaces: "
            f"set {MODE_ENV}=off to run without model patches"
        ) from error
    _applied[record.target] = record


def _say_once(text: str, warn: bool) -> None:
    if text not in _said:
        _said.add(text)
        logger.log(logging.WARNING if warn else logging.INFO, text)
