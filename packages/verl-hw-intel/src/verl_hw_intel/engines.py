# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Training engines for Intel XPU; imported when verl imports its own engines."""

from verl_hw_core.engines import (
    FSDPLanguageModelEngine,
    FSDPValueModelEngine,
    MegatronLanguageModelEngine,
    MegatronValueModelEngine,
    register_engine,
)
from verl_hw_intel.spec import SPEC


@register_engine(SPEC, model_type="language_model", backends=("fsdp", "fsdp2"))
class IntelFSDPEngineWithLMHead(FSDPLanguageModelEngine):
    """FSDP and FSDP2 engine with a language model head on Intel XPU."""


@register_engine(SPEC, model_type="value_model", backends=("fsdp", "fsdp2"))
class IntelFSDPEngineWithValueHead(FSDPValueModelEngine):
    """FSDP and FSDP2 engine with a value head on Intel XPU."""


@register_engine(SPEC, model_type="language_model", backends=("megatron",))
class IntelMegatronEngineWithLMHead(MegatronLanguageModelEngine):
    """Megatron engine with a language model head on Intel XPU."""


@register_engine(SPEC, model_type="value_model", backends=("megatron",))
class IntelMegatronEngineWithValueHead(MegatronValueModelEngine):
    """Megatron engine with a value head on Intel XPU."""
