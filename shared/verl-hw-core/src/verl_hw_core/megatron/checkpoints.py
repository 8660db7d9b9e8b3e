# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints an engine can resume from: its optimizer's state is cut as model parallelism cut the parameters.

Megatron's own error for another cut is a traceback of every rank out of the middle of the loading.
"""

import json
from pathlib import Path
from typing import Any

from verl_hw_core.errors import MegatronCheckpointError

# verl's names in the checkpoint.
_CONFIG, _OPTIMIZER = "transformer_config.json", "optimizer/dist_ckpt"
_SIZES = {
    "tensor_model_parallel_size": "tensor parallel",
    "pipeline_model_parallel_size": "pipeline parallel",
    "expert_model_parallel_size": "expert parallel",
    "expert_tensor_parallel_size": "expert tensor parallel",
}


def require_same_cut(folder: Path, config: Any) -> None:
    """Refuse a checkpoint whose optimizer state only engines with other model-parallel sizes can read.

    Args:
        folder: The checkpoint, as verl wrote it.
        config: Megatron's TransformerConfig of the engine.

    Raises:
        MegatronCheckpointError: The sizes differ.
    """
    if not (folder / _CONFIG).is_file() or not (folder / _OPTIMIZER).is_dir():
        return
    saved = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    differing = {
        text: (saved[name], getattr(config, name))
        for name, text in _SIZES.items()
        if saved.get(name) is not None and saved[name] != getattr(config, name)
    }
    if not differing:
        return
    was = ", ".join(f"{text} {old}" for text, (old, _) in differing.items())
    now = ", ".join(f"{text} {new}" for text, (_, new) in differing.items())
    raise MegatronCheckpointError(
        f"{folder} was saved with {was}; this engine has {now}. Optimizer state is read with the sizes that wrote it. "
        "Resume with those, or load the weights alone: checkpoint.load_contents=[model]"
    )
