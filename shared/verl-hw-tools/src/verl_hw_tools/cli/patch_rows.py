# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What would be patched for a vendor, as rows of text. Nothing is applied and no device is touched."""

import importlib.util
from dataclasses import dataclass

from verl_hw_core.model_patches import declarations
from verl_hw_core.model_patches.registry import MODE_ENV, mode
from verl_hw_core.model_patches.targets import KNOWN_KERNELS, MODEL_TYPES, SITES, Operation, Site

NO_KERNEL = "no public vendor kernel with gradients"
NOT_MAPPED = "(no operation mapped)"


@dataclass(frozen=True)
class Row:
    """One target of one vendor.

    Attributes:
        vendor: Platform key.
        model_type: HF model type.
        target: Attribute path in transformers' module, or a note.
        kind: ``fused``, ``portable``, ``patch`` or ``none``.
        kernel: The vendor's kernel, or what is known about it.
        in_force: ``yes``, ``no``, or ``if it passes the gradient check`` in the training process.
    """

    vendor: str
    model_type: str
    target: str
    kind: str
    kernel: str
    in_force: str

    @property
    def replaced(self) -> bool:
        """Whether the target is replaced, or is if its kernel passes the gradient check."""
        return not self.in_force.startswith("no")


def rows(vendor: str) -> tuple[Row, ...]:
    """Return the rows of a vendor, by model type, under the current ``VERL_HW_MODEL_PATCHES``.

    Args:
        vendor: Platform key.

    Raises:
        ModelPatchError: ``VERL_HW_MODEL_PATCHES`` holds an unknown value.
    """
    wanted = mode()
    found = []
    for model_type in sorted({*MODEL_TYPES, *declarations.patched_model_types(vendor)}):
        patches = declarations.patches(vendor, model_type)
        state = f"no ({MODE_ENV}=off)" if wanted == "off" else "yes"
        own = [Row(vendor, model_type, patch.target, "patch", patch.reason, state) for patch in patches]
        own += [_site_row(vendor, site, wanted) for site in SITES if site.model_type == model_type]
        found += own or [Row(vendor, model_type, NOT_MAPPED, "none", NO_KERNEL, "no")]
    return tuple(found)


def _site_row(vendor: str, site: Site, wanted: str) -> Row:
    kernels = declarations.fused_ops(vendor, site.operation)
    importable = [fused for fused in kernels if _installed(fused.module)]
    if wanted == "portable":
        return Row(vendor, site.model_type, site.name, "portable", "torch operations", "yes")
    if not kernels:
        return Row(vendor, site.model_type, site.name, "none", _unusable(vendor, site.operation), "no")
    kernel = importable[0].kernel if importable else f"{kernels[0].kernel} (not installed)"
    state = "if it passes the gradient check" if importable else "no"
    return Row(vendor, site.model_type, site.name, "fused", kernel, "no" if wanted == "off" else state)


def _unusable(vendor: str, operation: Operation) -> str:
    known = KNOWN_KERNELS.get((vendor, operation))
    return f"{NO_KERNEL}; {known} is known by name only" if known else NO_KERNEL


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # a parent package is missing, or a module without a spec stands in for it
        return False
