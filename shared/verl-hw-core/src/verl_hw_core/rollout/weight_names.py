# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Under which names a trainer may send a model's weights.

transformers 5 holds some weights under other names and in another form than checkpoints do: the experts of a layer are
one packed tensor. Megatron's bridges send a checkpoint's names, verl's FSDP engines split packed experts in a way of
verl's own, and a packed tensor may come as it is. No table of ours: the names are what transformers would save, by its
own conversion mapping, and what verl's own function makes of the model's tensors. Both only slice the tensors, so that
each name stands for a view into the model, and what is written there is in the model.
"""

import importlib.util
from collections.abc import Mapping
from typing import Any

import torch

from verl_hw_core import upstream

ROW = "experts-weight-names"
"""Ledger row of the functions that give the names."""

_OF_THE_FILE = "_weight_conversions"


def other_names(model: Any, own: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return views into a model's tensors by the other names that they, or parts of them, may come under.

    A form that is no slice (a transposed copy) has no name here: it is refused as unknown when it comes.

    Args:
        model: The model; one that is not transformers' has no other names.
        own: Its state dict.
    """
    packed = importlib.util.find_spec("transformers.core_model_loading") is not None  # transformers 5
    if not packed or not hasattr(model, "config") or not upstream.check(ROW):
        return {}
    storages = {tensor.untyped_storage().data_ptr() for tensor in own.values()}
    found = {**_as_checkpoints_have_them(model, own), **_as_verl_splits_them(model, own)}
    return {
        name: tensor
        for name, tensor in found.items()
        if name not in own and tensor.untyped_storage().data_ptr() in storages
    }


def _as_checkpoints_have_them(model: Any, own: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    from transformers.core_model_loading import revert_weight_conversion

    # transformers would go by the file that the model was loaded from; the trainer's engine may read another form.
    of_the_file = vars(model).pop(_OF_THE_FILE, None)
    try:
        return dict(revert_weight_conversion(model, dict(own)))
    finally:
        if of_the_file is not None:
            setattr(model, _OF_THE_FILE, of_the_file)


def _as_verl_splits_them(model: Any, own: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    if all(tensor.dim() < 3 for tensor in own.values()):
        return {}  # nothing is packed, and the import is a dear one
    from verl.workers.engine.fsdp.utils import unfuse_moe_params

    return dict(unfuse_moe_params(iter(own.items()), model.config.model_type))
