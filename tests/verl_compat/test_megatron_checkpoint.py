# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that was saved with other parallel sizes is refused by name, with what helps."""

SCRIPT = """
import json
from pathlib import Path
from types import SimpleNamespace
import torch
import torch.distributed as dist
torch.cuda.current_device = lambda: torch.device("cpu")
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
from megatron.core import dist_checkpointing
from verl_hw_core.megatron.checkpoints import require_same_cut
def sizes(tensor, pipeline=1):
    return {"tensor_model_parallel_size": tensor, "pipeline_model_parallel_size": pipeline,
            "expert_model_parallel_size": 1, "expert_tensor_parallel_size": tensor}
def saved(sharding):
    folder = Path(root, sharding)
    (folder / "optimizer" / "dist_ckpt").mkdir(parents=True)
    (folder / "transformer_config.json").write_text(json.dumps(sizes(2)))
    metadata = {"distrib_optim_sharding_type": sharding}
    dist_checkpointing.save({"a": 1}, str(folder / "optimizer" / "dist_ckpt"), content_metadata=metadata)
    return folder
def said(folder, **engine):
    try:
        return require_same_cut(folder, SimpleNamespace(**sizes(**engine)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
cut, any_cut = saved("dp_reshardable"), saved("fully_reshardable")
answer(
    same=said(cut, tensor=2), other=said(cut, tensor=1, pipeline=2), any_cut=said(any_cut, tensor=1, pipeline=2),
    weights=said(Path(root, "weights"), tensor=1),
)
"""


def test_optimizer_state_is_read_with_the_sizes_that_wrote_it(forks, tmp_path):
    answer = forks.run(f"root = {str(tmp_path)!r}\n" + SCRIPT)
    assert answer["same"] is None
    assert answer["other"].startswith(f"MegatronCheckpointError: {tmp_path / 'dp_reshardable'} was saved with tensor")
    assert "tensor parallel 2, pipeline parallel 1" in answer["other"]
    assert "this engine has tensor parallel 1, pipeline parallel 2" in answer["other"]
    assert "dist_ckpt_optim_fully_reshardable=True" in answer["other"]
    assert answer["any_cut"] is None
    assert answer["weights"] is None  # a checkpoint without optimizer state
