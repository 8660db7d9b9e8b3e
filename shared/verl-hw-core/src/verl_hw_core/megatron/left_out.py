# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors of a checkpoint that a bridge takes nowhere: then another model is trained, without an error."""

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

_LAYER = re.compile(r"(?P<layer>.*?\.\d+)\.(?P<rest>.+)")
_COMPUTED = ("rotary_emb.inv_freq",)  # old checkpoints hold it; it follows from the config

logger = logging.getLogger("verl_hw_core")


def left_out(stored: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return the checkpoint's tensors that a rank's layers have no place for.

    A rank judges the layers that it has, whole: other layers, and other experts of its own, are on other ranks.

    Args:
        stored: Names in the checkpoint.
        taken: Names that the bridge reads for this rank's part of the model.
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
    """Say which tensors of the checkpoint no parameter takes.

    Args:
        bridge: The mbridge bridge, after it has loaded the weights.
        models: This rank's parts of the model.
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
