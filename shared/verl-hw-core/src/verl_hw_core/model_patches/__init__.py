# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Replacing parts of transformers' models on a chip: by a vendor's fused kernel where it is proved, or by a patch.

See docs/model_patches.md. Importing this package imports neither torch nor transformers.
"""

from verl_hw_core.model_patches.declarations import ENTRY_POINTS, FusedOp, ModelPatch, add_fused_op, add_patch
from verl_hw_core.model_patches.registry import Applied, applied, apply, revert

__all__ = [
    "ENTRY_POINTS",
    "Applied",
    "FusedOp",
    "ModelPatch",
    "add_fused_op",
    "add_patch",
    "applied",
    "apply",
    "revert",
]
