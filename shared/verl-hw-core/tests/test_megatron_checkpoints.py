# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that was saved with other parallel sizes is refused by name, with what helps."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from verl_hw_core.errors import MegatronCheckpointError
from verl_hw_core.megatron.checkpoints import require_same_cut


def sizes(tensor: int, pipeline: int = 1) -> dict[str, int]:
    return {
        "tensor_model_parallel_size": tensor,
        "pipeline_model_parallel_size": pipeline,
        "expert_model_parallel_size": 1,
        "expert_tensor_parallel_size": tensor,
    }


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    (tmp_path / "optimizer" / "dist_ckpt").mkdir(parents=True)
    (tmp_path / "transformer_config.json").write_text(json.dumps(sizes(2)))
    return tmp_path


def test_the_same_sizes_are_read(saved: Path) -> None:
    require_same_cut(saved, SimpleNamespace(**sizes(2)))


def test_other_sizes_are_refused_with_both(saved: Path) -> None:
    with pytest.raises(MegatronCheckpointError) as refused:
        require_same_cut(saved, SimpleNamespace(**sizes(1, pipeline=2)))
    said = str(refused.value)
    assert f"{saved} was saved with tensor parallel 2, pipeline parallel 1" in said
    assert "this engine has tensor parallel 1, pipeline parallel 2" in said
    assert said.endswith("checkpoint.load_contents=[model]")


def test_a_checkpoint_without_optimizer_state_suits_any_engine(tmp_path: Path) -> None:
    (tmp_path / "transformer_config.json").write_text(json.dumps(sizes(2)))
    require_same_cut(tmp_path, SimpleNamespace(**sizes(1)))
