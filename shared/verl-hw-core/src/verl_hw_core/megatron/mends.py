# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What is put right in Megatron-core before verl imports it: only what TransformerEngine and Apex would have done."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from verl_hw_core.megatron import settings
from verl_hw_core.megatron.layer_spec import use_local_layers
from verl_hw_core.megatron.optimizer_state import mend_checkpoints


def has_transformer_engine() -> bool:
    """Whether Megatron-core found a TransformerEngine, NVIDIA's or one that stands in for it."""
    from megatron.core.models.gpt import gpt_layer_specs

    return bool(gpt_layer_specs.HAVE_TE)


def transformer_overrides(
    requested: Mapping[str, Any] = MappingProxyType({}), *, sequence_parallel: bool = False
) -> dict[str, Any]:
    """Return verl's ``override_transformer_config`` for the layers that this process has.

    Args:
        requested: What the user set.
        sequence_parallel: verl's own setting.

    Raises:
        UnsupportedModelSettingError: A setting has no counterpart without TransformerEngine.
    """
    from megatron.core.transformer import TransformerConfig

    if has_transformer_engine():
        return dict(requested)
    known = frozenset(field.name for field in dataclasses.fields(TransformerConfig))
    return settings.local_overrides(requested, known, sequence_parallel)


def apply() -> None:
    """Apply what this process needs; a second call changes nothing."""
    from megatron.core.optimizer import distrib_optimizer

    if not has_transformer_engine():
        use_local_layers()
    if not distrib_optimizer.HAVE_APEX_OR_TE:
        mend_checkpoints()
