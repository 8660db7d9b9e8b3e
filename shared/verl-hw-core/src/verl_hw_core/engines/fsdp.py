# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's FSDP and FSDP2 engines with what every accelerator needs."""

from typing import Any

from verl.plugin.platform import get_platform
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead, FSDPEngineWithValueHead

from verl_hw_core.engines.attention import usable_attention
from verl_hw_core.run_facts import record_engine


class AcceleratorFSDPMixin:
    """Adds the accelerator's part to an FSDP engine; put it before verl's engine in the bases."""

    model_config: Any

    def initialize(self) -> None:
        """Build model, optimizer and scheduler as verl does, then note what was built for whoever asked."""
        super().initialize()  # type: ignore[misc]
        record_engine(self)

    def _build_module(self) -> Any:
        # verl declares this hook and never calls it (0.9.0, 0.9.1, main).
        get_platform().apply_model_patches(self.model_config.hf_config.model_type)
        with usable_attention(self.model_config.override_config.get("attn_implementation")):
            return super()._build_module()  # type: ignore[misc]


class FSDPLanguageModelEngine(AcceleratorFSDPMixin, FSDPEngineWithLMHead):
    """FSDP engine with a language model head."""


class FSDPValueModelEngine(AcceleratorFSDPMixin, FSDPEngineWithValueHead):
    """FSDP engine with a value head."""
