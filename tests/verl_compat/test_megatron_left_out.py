# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors of a checkpoint that mbridge takes nowhere are named: the gate of Qwen2-MoE's shared expert is one."""

import pytest

from verl_hw_core.megatron.checkpoints import left_out

LAYER = "model.layers.{}.mlp.{}.weight"

SCRIPT = """
import logging
from types import SimpleNamespace
import torch, transformers
from mbridge.core.safetensor_io import SafeTensorIO
from mbridge.models.qwen2 import Qwen2Bridge
from safetensors.torch import save_file
from verl_hw_core.megatron.checkpoints import warn_of_left_out
said = []
class Keep(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
logging.getLogger("verl_hw_core").addHandler(Keep())

layer = torch.nn.Module()
layer.layer_number, layer.mlp = 2, torch.nn.Module()
layer.mlp.linear_fc2 = torch.nn.Linear(2, 2, bias=False)
model = torch.nn.Module()
model.decoder = torch.nn.Module()
model.decoder.layers = torch.nn.ModuleList([layer])

def tell(rank, *names):
    save_file({name: torch.ones(1) for name in names}, folder + "/model.safetensors")
    bridge = object.__new__(Qwen2Bridge)
    bridge.mpu = SimpleNamespace(tp_rank=rank, ep_size=1)
    bridge.hf_config = bridge.config = None
    bridge.safetensor_io = SafeTensorIO(folder)
    said.clear()
    warn_of_left_out(bridge, [model])
    return list(said)

down, gate = "model.layers.1.mlp.down_proj.weight", "model.layers.1.mlp.shared_expert_gate.weight"
answer(whole=tell(0, down, "lm_head.weight"), torn=tell(0, down, gate), other_rank=tell(1, down, gate))
"""


def test_the_tensor_is_named_by_the_rank_that_reads_the_checkpoint(forks, tmp_path):
    told = forks.run(f"folder = {str(tmp_path)!r}\n" + SCRIPT)
    assert told["whole"] == told["other_rank"] == []
    (line,) = told["torn"]
    assert "Qwen2Bridge has no place for model.layers.1.mlp.shared_expert_gate.weight. verl-hw check-model" in line


@pytest.mark.parametrize(
    ("stored", "taken", "expected"),
    [
        # Layer 1 is on another rank of the pipeline.
        ([LAYER.format(0, "up"), LAYER.format(1, "up")], [LAYER.format(0, "up")], []),
        # Expert 7 is on another rank.
        ([LAYER.format(0, "experts.7.up")], [LAYER.format(0, "experts.3.up")], []),
        ([LAYER.format(0, "gate")], [LAYER.format(0, "experts.3.up")], [LAYER.format(0, "gate")]),
        (["model.layers.0.self_attn.rotary_emb.inv_freq"], [LAYER.format(0, "up")], []),
        (["model.norm.weight"], [LAYER.format(0, "up")], []),
    ],
)
def test_other_ranks_parts_are_not_missed(stored, taken, expected):
    assert left_out(stored, taken) == expected
