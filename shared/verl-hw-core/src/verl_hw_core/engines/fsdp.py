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
from verl_hw_core.training.attention import usable_attention
from verl_hw_core.training.gradients import WatchedEngine
from verl_hw_core.training.preparation import prepare


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
        prepare(platform, model_config, engine_config)
        super().__init__(model_config, engine_config, *args, **kwargs)  # type: ignore[call-arg]
        reduction.require_averaging(self.device_mesh, engine_config)

    def initialize(self) -> None:
        """Build model, optimizer and scheduler as verl does, then note what was built for whoever asked."""
        super().initialize()  # type: ignore[misc]
        if not self.engine_config.forward_only:
            self.watch_gradients(self.module)
        record_engine(self)

    def train_batch(self, data: Any, loss_function: Any) -> Any:
        """Train as verl does, unless the loss' configuration asks for what nothing reads."""
        unread.refuse_unread_by_loss(loss_function, self.engine_config, self.optimizer_config)
        return super().train_batch(data, loss_function)

    def _build_module(self) -> Any:
        if not self.model_config.use_liger:  # Liger replaces the same parts
            # verl declares this hook and never calls it (0.9.0, 0.9.1, main).
            get_platform().apply_model_patches(self.model_config.hf_config.model_type)
        requested = self.model_config.override_config.get("attn_implementation")
        with usable_attention(requested, self.engine_config.ulysses_sequence_parallel_size):
            module = super()._build_module()  # type: ignore[misc]
        platform = get_platform()
        device = torch.device(platform.device_name, platform.current_device())
        experts.choose(module, device, self._compute_dtype())
        if self.model_config.use_remove_padding:
            attention.require_separate_sequences(module)
        return module

    def _compute_dtype(self) -> torch.dtype:
        name = (self.engine_config.mixed_precision or {}).get("param_dtype", "bf16")  # verl's own default
        return PrecisionType.to_dtype(name)

    def _build_fsdp_module(self, module: Any) -> Any:
        module = super()._build_fsdp_module(module)  # type: ignore[misc]
        platform = get_platform()
        if self.engine_config.strategy == "fsdp2":
            device = torch.device(platform.device_name, platform.current_device())
            reduction.force_sum_where_needed(module, self.device_mesh, device)
        if self.scaler is not None:
            self.scaler = preparation.grad_scaler(platform.device_name)
        return module


class FSDPLanguageModelEngine(AcceleratorFSDPMixin, FSDPEngineWithLMHead):
    """FSDP engine with a language model head."""


class FSDPValueModelEngine(AcceleratorFSDPMixin, FSDPEngineWithValueHead):
    """FSDP engine with a value head."""
