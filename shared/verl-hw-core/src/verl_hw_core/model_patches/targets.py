# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Data: where the operations sit in transformers' models, and which vendors' kernels are publicly known."""

from dataclasses import dataclass
from typing import Literal

Operation = Literal["rms_norm", "rotary", "multimodal_rotary", "swiglu"]


@dataclass(frozen=True)
class Site:
    """One place in a transformers model that computes an operation.

    Attributes:
        model_type: HF model type.
        operation: What it computes; see :mod:`verl_hw_core.model_patches.operations`.
        name: Attribute path in the model's ``modeling_<model type>`` module.
    """

    model_type: str
    operation: Operation
    name: str

    @property
    def target(self) -> str:
        """``"module:attribute.path"``."""
        return f"transformers.models.{self.model_type}.modeling_{self.model_type}:{self.name}"


def _sites(
    model_type: str, norms: str = "", mlps: str = "", rotary: str = "", multimodal: str = ""
) -> tuple[Site, ...]:
    return (
        *(Site(model_type, "rms_norm", f"{name}.forward") for name in norms.split()),
        *(Site(model_type, "swiglu", f"{name}.forward") for name in mlps.split()),
        *(Site(model_type, "rotary", name) for name in rotary.split()),
        *(Site(model_type, "multimodal_rotary", name) for name in multimodal.split()),
    )


_ROTARY = "apply_rotary_pos_emb"

SITES: tuple[Site, ...] = (
    *_sites("llama", "LlamaRMSNorm", "LlamaMLP", _ROTARY),
    *_sites("qwen2", "Qwen2RMSNorm", "Qwen2MLP", _ROTARY),
    *_sites("qwen2_5_vl", "Qwen2_5_VLRMSNorm", "Qwen2MLP Qwen2_5_VLMLP", multimodal="apply_multimodal_rotary_pos_emb"),
    *_sites("qwen3", "Qwen3RMSNorm", "Qwen3MLP", _ROTARY),
    *_sites("qwen3_moe", "Qwen3MoeRMSNorm", "Qwen3MoeMLP", _ROTARY),
    *_sites("qwen3_vl", "Qwen3VLTextRMSNorm", "Qwen3VLTextMLP", _ROTARY),
    *_sites("qwen3_vl_moe", "Qwen3VLMoeTextRMSNorm", "Qwen3VLMoeTextMLP", _ROTARY),
)

ASCEND_MODEL_TYPES = (
    "qwen2", "qwen2_5_vl", "qwen3", "qwen3_5", "qwen3_5_moe", "qwen3_moe", "qwen3_next", "qwen3_vl", "qwen3_vl_moe",
)  # fmt: skip
"""Model types that verl patches for Ascend (verl/models/transformers/npu_patch.py)."""

MODEL_TYPES = tuple(sorted({*ASCEND_MODEL_TYPES, *(site.model_type for site in SITES)}))
"""Every model type that the listing names."""

KNOWN_KERNELS: dict[tuple[str, str], str] = {
    # Names only, from lmdeploy's camb backend; signatures and gradients are not public, so nothing calls them.
    ("cambricon", "rms_norm"): "torch_mlu_ops.fused_rms_norm",  # check-tree: allow (for the listing)
    ("cambricon", "rotary"): "torch_mlu_ops.apply_rotary",  # check-tree: allow (for the listing)
    ("cambricon", "swiglu"): "torch_mlu_ops.active",  # check-tree: allow (for the listing)
}
"""Kernels that exist by name, by (vendor, operation), and cannot be used until their signature is known."""
