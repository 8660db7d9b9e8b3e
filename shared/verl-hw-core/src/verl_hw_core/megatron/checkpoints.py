# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Megatron engines: what loading would get wrong without an error, and what it cannot do.

Megatron's distributed optimizer uses torch's Adam where TransformerEngine and Apex are missing. Loading then gives all
parameters one and the same ``step`` tensor, and copies the running process's step over the loaded one: training goes on
with a wrong bias correction, and nothing says so. Before the first step there is no state at all, on which both saving
and loading fail, so that no new process could resume.
"""

import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from verl_hw_core import upstream
from verl_hw_core.errors import MegatronCheckpointError

# Ledger rows.
ROW = "megatron-adam-step"  # the step that loading loses
STATE_ROW = "megatron-adam-state"  # the state that is not there before the first step

# verl's names in the checkpoint.
_CONFIG, _OPTIMIZER = "transformer_config.json", "optimizer/dist_ckpt"
_SIZES = {
    "tensor_model_parallel_size": "tensor parallel",
    "pipeline_model_parallel_size": "pipeline parallel",
    "expert_model_parallel_size": "expert parallel",
    "expert_tensor_parallel_size": "expert tensor parallel",
}
_LAYER = re.compile(r"(?P<layer>.*?\.\d+)\.(?P<rest>.+)")
_COMPUTED = ("rotary_emb.inv_freq",)  # old checkpoints hold it; it follows from the config

logger = logging.getLogger("verl_hw_core")


def require_same_cut(folder: Path, config: Any) -> None:
    """Refuse a checkpoint whose optimizer state only engines with other model-parallel sizes can read.

    It is cut as model parallelism cut the parameters; Megatron's own error for another cut is a traceback of every rank
    out of the middle of the loading. ``folder`` is as verl wrote it, ``config`` the engine's TransformerConfig.

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


def left_out(stored: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return the names in a checkpoint that a rank's layers have no place for.

    A rank judges the layers that it has, whole: other layers, and other experts of its own, are on other ranks.
    ``taken`` are the names that the bridge reads for this rank's part of the model.
    """
    kinds: dict[str, set[str]] = defaultdict(set)
    for name in taken:
        if match := _LAYER.fullmatch(name):
            kinds[match["layer"]].add(_kind(match["rest"]))
    found = []
    for name in stored:
        match = _LAYER.fullmatch(name)
        known = kinds.get(match["layer"]) if match else None
        if match and known and _kind(match["rest"]) not in known and not name.endswith(_COMPUTED):
            found.append(name)
    return sorted(found)


def _kind(rest: str) -> str:
    return re.sub(r"\d+", "*", rest)


def warn_of_left_out(bridge: Any, models: Sequence[Any]) -> None:
    """Say which tensors of the checkpoint no parameter takes: then another model is trained, without an error.

    The mbridge bridge has loaded the weights by then; ``models`` are this rank's parts of the model.
    """
    if bridge.mpu.tp_rank != 0:
        return
    taken = {
        theirs
        for model in models
        for ours in bridge._weight_name_mapping_mcore_local_to_global(model).values()
        for theirs in bridge._weight_name_mapping_mcore_to_hf(ours)
    }
    names = left_out(bridge.safetensor_io.load_hf_weight_names(), taken)
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        logger.warning(
            "Megatron trains another model than the checkpoint's: %s has no place for %s%s. "
            "verl-hw check-model %s compares the two; docs/new_model.md tells how to register the model",
            *(type(bridge).__name__, ", ".join(names[:3]), more, bridge.safetensor_io.hf_dir),
        )


def mend_checkpoints() -> None:
    """Mend ``DistributedOptimizer.state_dict`` and ``load_state_dict``; a second call changes nothing."""
    upstream.apply(STATE_ROW)
    upstream.apply(ROW)


@upstream.replaces(STATE_ROW, "megatron.core.optimizer.distrib_optimizer:DistributedOptimizer.state_dict")
def state_dict(own: Callable[[Any], Any], optimizer: Any) -> Any:
    """Megatron's own, after Adam's state was given the values with which Adam itself would start."""
    if isinstance(optimizer.optimizer, torch.optim.Adam):  # AdamW is one
        for group in optimizer.optimizer.param_groups:
            for parameter in group["params"]:
                state = optimizer.optimizer.state[parameter]
                if not state:
                    state["step"] = torch.tensor(0.0, dtype=torch.float32)
                    state["exp_avg"] = torch.zeros_like(parameter)
                    state["exp_avg_sq"] = torch.zeros_like(parameter)
    return own(optimizer)


@upstream.replaces(ROW, "megatron.core.optimizer.distrib_optimizer:DistributedOptimizer.load_state_dict")
def load_state_dict(own: Callable[..., None], optimizer: Any, state_dict: dict[str, Any]) -> None:
    """Megatron's own, then each parameter's step as the checkpoint has it."""
    own(optimizer, state_dict)
    steps = {group["step"] for group in state_dict.get("optimizer", {}).get("param_groups", ()) if "step" in group}
    if len(steps) != 1:
        return
    (step,) = steps
    for state in optimizer.optimizer.state.values():
        if "step" in state:
            state["step"] = torch.tensor(float(step), dtype=torch.float32)
