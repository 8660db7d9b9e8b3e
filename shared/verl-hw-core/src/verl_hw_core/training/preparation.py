# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The calls that an engine makes before verl builds anything: refuse what cannot work, mend the rest."""

from typing import Any

from verl_hw_core import upstream
from verl_hw_core.training import checkpoints, fused_kernels, jagged_conversions, log_probs, memory, nested, packing


def prepare(platform: Any, model_config: Any, engine_config: Any) -> None:
    """Make verl's FSDP training right for the platform's device; a second call changes nothing more.

    Args:
        platform: verl's platform.
        model_config: verl's ``HFModelConfig``.
        engine_config: verl's ``FSDPEngineConfig``.

    Raises:
        UnsupportedModelSettingError: The configuration asks for something that would be wrong or fail later.
        UpstreamPatchError: As :func:`prepare_device`.
    """
    upstream.check("value-model-attention", "packing-attention", "grad-scaler-device")
    packing.require_sequence_parallelism(model_config, engine_config.ulysses_sequence_parallel_size)
    fused_kernels.require_backend(model_config, platform.device_name)
    packing.keep_transformers_attention()
    if model_config.enable_activation_offload:
        memory.offload_views_apart()
    prepare_device(platform)


def prepare_device(platform: Any) -> None:
    """Mend what every training engine of verl uses, whatever builds the model; a second call changes nothing more.

    Args:
        platform: verl's platform.

    Raises:
        UpstreamPatchError: verl or another package lacks a name without which numbers would be wrong.
    """
    log_probs.replace_helpers()
    nested.unwrap_constructors(platform.device_name)
    jagged_conversions.complete(platform.device_name)
    nested.synchronize_host_copies(platform)
    memory.survive_memory_queries()
    memory.pageable_where_pinned_fails()
    checkpoints.care_for_checkpoints()
    upstream.require_applied()
