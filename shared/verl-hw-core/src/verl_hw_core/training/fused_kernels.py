# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``use_fused_kernels``: verl's fused log-probs, refused at configuration time where they would fail in the first step.

verl's triton kernels assert CUDA tensors and are imported in the first forward; without a known backend verl leaves the
model as it is and then looks for log-probs in its output. The torch backend needs no kernels.
"""

import importlib.util
from typing import Any

from verl_hw_core.errors import UnsupportedModelSettingError

_REMEDY = "set +model.fused_kernel_options.impl_backend=torch, which needs no kernels, or use_fused_kernels=False"


def require_backend(model_config: Any, device: str) -> None:
    """Check that the fused kernels which were asked for can run.

    Args:
        model_config: verl's ``HFModelConfig``.
        device: torch device type.

    Raises:
        UnsupportedModelSettingError: They cannot.
    """
    if not model_config.use_fused_kernels:
        return
    backend = (model_config.fused_kernel_options or {}).get("impl_backend")
    problem = _problem(backend, device)
    if problem:
        raise UnsupportedModelSettingError(
            f"use_fused_kernels=True with impl_backend={backend!r}: {problem}; {_REMEDY}"
        )


def _problem(backend: str | None, device: str) -> str:
    if backend == "torch":
        return ""
    if backend not in ("triton", "liger"):
        return "verl knows the backends torch, triton and liger"
    if backend == "triton" and device != "cuda":
        return f"verl's triton kernels take CUDA tensors only, not {device}"
    module = "triton" if backend == "triton" else "liger_kernel"
    return "" if importlib.util.find_spec(module) else f"no module {module!r} is installed"
