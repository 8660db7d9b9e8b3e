# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A language model that neither transformers, mbridge nor verl knows. Importing it tells them, and verl-hw."""

from transformers import AutoConfig, AutoModelForCausalLM

from plover_llm import megatron
from plover_llm.configuration import PloverConfig
from plover_llm.modeling import PloverForCausalLM

AutoConfig.register(PloverConfig.model_type, PloverConfig, exist_ok=True)
AutoModelForCausalLM.register(PloverConfig, PloverForCausalLM, exist_ok=True)
megatron.add()
