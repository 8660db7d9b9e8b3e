# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Training engines for Cambricon MLU; imported when verl imports its own engines."""

from verl_hw_cambricon.spec import SPEC
from verl_hw_core.engines import (
    FSDPLanguageModelEngine,
    FSDPValueModelEngine,
    MegatronLanguageModelEngine,
    MegatronValueModelEngine,
    register_engine,
)


@register_engine(SPEC, model_type="language_model", backends=("fsdp", "fsdp2"))
class CambriconFSDPEngineWithLMHead(FSDPLanguageModelEngine):
    """FSDP and FSDP2 engine with a language model head on Cambricon MLU."""


@register_engine(SPEC, model_type="value_model", backends=("fsdp", "fsdp2"))
class CambriconFSDPEngineWithValueHead(FSDPValueModelEngine):
    """FSDP and FSDP2 engine with a value head on Cambricon MLU."""


@register_engine(SPEC, model_type="language_model", backends=("megatron",))
class CambriconMegatronEngineWithLMHead(MegatronLanguageModelEngine):
    """Megatron engine with a language model head on Cambricon MLU."""


@register_engine(SPEC, model_type="value_model", backends=("megatron",))
class CambriconMegatronEngineWithValueHead(MegatronValueModelEngine):
    """Megatron engine with a value head on Cambricon MLU."""
