# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Training engines for Enflame GCU; imported when verl imports its own engines."""

from verl_hw_core.engines import (
    FSDPLanguageModelEngine,
    FSDPValueModelEngine,
    MegatronLanguageModelEngine,
    MegatronValueModelEngine,
    register_engine,
)
from verl_hw_enflame.spec import SPEC


@register_engine(SPEC, model_type="language_model", backends=("fsdp", "fsdp2"))
class EnflameFSDPEngineWithLMHead(FSDPLanguageModelEngine):
    """FSDP and FSDP2 engine with a language model head on Enflame GCU."""


@register_engine(SPEC, model_type="value_model", backends=("fsdp", "fsdp2"))
class EnflameFSDPEngineWithValueHead(FSDPValueModelEngine):
    """FSDP and FSDP2 engine with a value head on Enflame GCU."""


@register_engine(SPEC, model_type="language_model", backends=("megatron",))
class EnflameMegatronEngineWithLMHead(MegatronLanguageModelEngine):
    """Megatron engine with a language model head on Enflame GCU."""


@register_engine(SPEC, model_type="value_model", backends=("megatron",))
class EnflameMegatronEngineWithValueHead(MegatronValueModelEngine):
    """Megatron engine with a value head on Enflame GCU."""
