# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What vendors and third parties declare: fused operations and patches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from verl_hw_core.errors import ModelPatchError
from verl_hw_core.facts.vendors import call_entry_points
from verl_hw_core.model_patches.targets import SITES, Operation

ANY_VENDOR = "any"

ENTRY_POINTS = "verl_hw.model_patches"
"""Entry-point group whose objects are called without arguments before the registry is first read."""


@dataclass(frozen=True, kw_only=True)
class FusedOp:
    """A vendor's kernel for one operation. It is used at every site of the operation once its gradients are proved.

    Attributes:
        vendor: Platform key, or ``"any"``.
        operation: ``rms_norm``, ``rotary``, ``multimodal_rotary`` or ``swiglu``.
        module: Module that holds the kernel.
        attribute: Its attribute path there.
        adapter: Called with the kernel and the arguments of the operation's portable form
            (:mod:`verl_hw_core.model_patches.operations`); returns what that returns.
        dtypes: torch dtypes, by name, that the kernel takes; others go to transformers' own form.
    """

    vendor: str
    operation: Operation
    module: str
    attribute: str
    adapter: Callable[..., Any]
    dtypes: tuple[str, ...] = ("float32", "bfloat16")

    def __post_init__(self) -> None:
        if self.operation not in get_args(Operation):
            raise ModelPatchError(f"operation={self.operation!r} must be one of {', '.join(get_args(Operation))}")
        if not self.dtypes:
            raise ModelPatchError(f"{self.kernel}: dtypes must name at least one torch dtype")

    @property
    def kernel(self) -> str:
        """The kernel's full name."""
        return f"{self.module}.{self.attribute}"


@dataclass(frozen=True, kw_only=True)
class ModelPatch:
    """A replacement that its author vouches for; it is applied as it is.

    Attributes:
        vendor: Platform key, or ``"any"``.
        model_type: HF model type.
        target: ``"module:attribute.path"`` of the function or class that is replaced.
        replacement: What takes its place.
        reason: Why, for the listing.
    """

    vendor: str
    model_type: str
    target: str
    replacement: Any
    reason: str

    def __post_init__(self) -> None:
        module, _, path = self.target.partition(":")
        if not module or not path:
            raise ModelPatchError(f"target={self.target!r} must be of the form 'module:attribute.path'")


_fused: dict[tuple[str, str, str], FusedOp] = {}
_patches: dict[tuple[str, str, str], ModelPatch] = {}


def add_fused_op(fused: FusedOp) -> None:
    """Declare a fused operation; the same kernel again replaces the declaration."""
    _fused[fused.vendor, fused.operation, fused.kernel] = fused


def add_patch(patch: ModelPatch) -> None:
    """Declare a patch; another one for the same vendor, model type and target replaces it."""
    _patches[patch.vendor, patch.model_type, patch.target] = patch


def fused_ops(vendor: str, operation: str) -> tuple[FusedOp, ...]:
    """Declared kernels for an operation, the vendor's own before those for any vendor."""
    call_entry_points(ENTRY_POINTS, "Model patches")
    found = [op for op in _fused.values() if op.vendor in (vendor, ANY_VENDOR) and op.operation == operation]
    return tuple(sorted(found, key=lambda op: op.vendor == ANY_VENDOR))


def patches(vendor: str, model_type: str) -> tuple[ModelPatch, ...]:
    """Declared patches for a model type, the vendor's own before those for any vendor."""
    call_entry_points(ENTRY_POINTS, "Model patches")
    found = [
        patch for patch in _patches.values() if patch.vendor in (vendor, ANY_VENDOR) and patch.model_type == model_type
    ]
    return tuple(sorted(found, key=lambda patch: patch.vendor == ANY_VENDOR))


def targets() -> tuple[str, ...]:
    """Return every name that may be replaced: where the operations sit, and what patches were declared for."""
    return (*(site.target for site in SITES), *dict.fromkeys(patch.target for patch in _patches.values()))


def patched_model_types(vendor: str) -> frozenset[str]:
    """Model types for which a patch is declared."""
    call_entry_points(ENTRY_POINTS, "Model patches")
    return frozenset(patch.model_type for patch in _patches.values() if patch.vendor in (vendor, ANY_VENDOR))
