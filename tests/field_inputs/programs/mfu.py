# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What verl's FLOPs counter holds of this device: the share of its peak that a step reached, and what was said of it.

Answers ``{"mfu": ..., "said": [...]}``.
"""

import json

from said import lines
from transformers import Qwen2Config
from verl.plugin.platform import get_platform
from verl.utils.flops_counter import FlopsCounter

config = Qwen2Config(
    hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2
)
with lines() as said:
    get_platform()
    achieved, promised = FlopsCounter(config).estimate_flops([1024] * 64, 1.0)
words = [line for line in said if "flops" in line.lower() or "mfu" in line.lower()]
print(json.dumps({"mfu": achieved / promised, "said": words}))
