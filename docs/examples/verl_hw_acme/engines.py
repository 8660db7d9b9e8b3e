# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Training engines for the Acme NPU."""

from verl_hw_acme.spec import SPEC
from verl_hw_core.engines import FSDPLanguageModelEngine, FSDPValueModelEngine, register_engine


@register_engine(SPEC, model_type="language_model", backends=("fsdp", "fsdp2"))
class AcmeFSDPEngineWithLMHead(FSDPLanguageModelEngine):
    """FSDP and FSDP2 engine with a language model head on the Acme NPU."""


@register_engine(SPEC, model_type="value_model", backends=("fsdp", "fsdp2"))
class AcmeFSDPEngineWithValueHead(FSDPValueModelEngine):
    """FSDP and FSDP2 engine with a value head on the Acme NPU."""
