# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Sync a mixture-of-experts policy, as verl's FSDP engine sends it, into the model of the bring-up rollout.

Answers ``{"synced": ..., "equal": ..., "error": ...}``.
"""

import json

import said
import torch
from transformers import AutoModelForCausalLM, Qwen3MoeConfig
from verl.plugin.platform import get_platform
from verl.workers.engine.fsdp.utils import unfuse_moe_params  # the last thing that get_per_tensor_param does

from verl_hw_core.errors import WeightSyncError
from verl_hw_core.rollout.weights import WeightSync

config = Qwen3MoeConfig(
    vocab_size=64, hidden_size=32, intermediate_size=48, moe_intermediate_size=16, num_hidden_layers=2,
    num_attention_heads=2, num_key_value_heads=1, head_dim=16, num_experts=4, num_experts_per_tok=2,
)  # fmt: skip
device = get_platform().device_name
trainer, rollout = (AutoModelForCausalLM.from_config(config).to(device) for _ in range(2))


class WholeTensor:
    """One tensor in one piece, as it comes from the transfer."""

    start = 0

    def __init__(self, name: str, value: torch.Tensor):
        self.name, self.shape, self.dtype = name, tuple(value.shape), str(value.dtype).removeprefix("torch.")
        self._value = value

    def tensor(self) -> torch.Tensor:
        return self._value.reshape(-1)


sync, answer = WeightSync(rollout), {"synced": None, "equal": False, "error": ""}
try:
    sync.load([WholeTensor(*item) for item in unfuse_moe_params(iter(trainer.state_dict().items()), "qwen3_moe")])
    answer["synced"] = sync.finish()
    pairs = zip(trainer.state_dict().values(), rollout.state_dict().values(), strict=True)
    answer["equal"] = all(torch.equal(*pair) for pair in pairs)
except WeightSyncError as error:
    answer["error"] = said.text_of(error)
print(json.dumps(answer))
