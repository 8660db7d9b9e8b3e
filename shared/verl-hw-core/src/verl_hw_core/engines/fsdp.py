# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's FSDP and FSDP2 engines with what every accelerator needs."""

from typing import Any

import torch
from verl.plugin.platform import get_platform
from verl.utils.torch_dtypes import PrecisionType
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead, FSDPEngineWithValueHead

from verl_hw_core import reduction
from verl_hw_core.facts.run_facts import record_engine
from verl_hw_core.training import attention, experts, preparation, unread
from verl_hw_core.training.gradients import WatchedEngine


class AcceleratorFSDPMixin(WatchedEngine):
    """Adds the accelerator's part to an FSDP engine; put it before verl's engine in the bases."""

    model_config: Any
    engine_config: Any
    optimizer_config: Any
    device_mesh: Any
    module: Any
    scaler: Any

    def __init__(self, model_config: Any, engine_config: Any, *args: Any, **kwargs: Any) -> None:
        platform = get_platform()
        unread.refuse_unread_by_fsdp(model_config, engine_config)
        reduction.install(platform.device_name)
        if PrecisionType.is_fp16((engine_config.mixed_precision or {}).get("param_dtype")):
            preparation.require_loss_scaling(platform.vendor_name, platform.device_name)
        preparation.prepare(platform, model_config, engine_config)
        super().__init__(model_config, engine_config, *args, **kwargs)  # type: ignore[call-arg]
        reduction.require_averaging(self.device_mesh, engine_config)

    def initialize(self) -> None:
        """Build model, optimizer and scheduler as verl does, then note what was built for whoever asked."""
        super().initialize()  # type: ignore[misc]
        if not self.engine_config.forward_only:
            self.watch_gradients(self.module)
        record_engine(self)

    def _build_module(self) -> Any:
        if not self.model_config.use_liger:  # Liger replaces the same parts
            # verl declares this hook and never calls it (0.9.0, 0.9.1, main).
            get_platform().apply_model_patches(self.model_config.hf_config.model_type)
        requested = self.model_config.override_config.get("attn_implementation")
        with attention.usable_attention(requested, self.engine_config.ulysses_sequence_parallel_size):
            module = super()._build_module()  # type: ignore[misc]
        dtype = (self.engine_config.mixed_precision or {}).get("param_dtype", "bf16")  # verl's own default
        experts.choose(module, _current_device(), PrecisionType.to_dtype(dtype))
        if self.model_config.use_remove_padding:
            attention.require_separate_sequences(module)
        return module

    def _build_fsdp_module(self, module: Any) -> Any:
        module = super()._build_fsdp_module(module)  # type: ignore[misc]
        if self.engine_config.strategy == "fsdp2":
            reduction.force_sum_where_needed(module, self.device_mesh, _current_device())
        if self.scaler is not None:
            self.scaler = preparation.grad_scaler(get_platform().device_name)
        return module


def _current_device() -> torch.device:
    platform = get_platform()
    return torch.device(platform.device_name, platform.current_device())


class FSDPLanguageModelEngine(AcceleratorFSDPMixin, FSDPEngineWithLMHead):
    """FSDP engine with a language model head."""


class FSDPValueModelEngine(AcceleratorFSDPMixin, FSDPEngineWithValueHead):
    """FSDP engine with a value head."""
