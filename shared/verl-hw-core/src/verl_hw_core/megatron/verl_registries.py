# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Registered models in verl's own four registries: training does not read them any more, merging checkpoints does.

Imports megatron.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from verl.models.mcore import registry
from verl.models.mcore.mbridge import make_value_model
from verl.models.mcore.model_forward import model_forward_gen

from verl_hw_core import upstream
from verl_hw_core.megatron import settings
from verl_hw_core.megatron.architecture_bridge import ArchitectureBridge, bridge_class
from verl_hw_core.megatron.architectures import HEAD, MegatronArchitecture, registered
from verl_hw_core.megatron.weight_names import WeightNames

# Ledger rows.
ROW = "verl-megatron-registries"  # the names that verl's registries have
MERGER_ROW = "verl-megatron-merger"  # the merger's own table of weight names

_LAYERS = "decoder.layers."


def install() -> None:
    """Put all registered models into verl's registries and its merger of checkpoints; a second call adds new ones."""
    _add_models()
    upstream.apply(MERGER_ROW)


@upstream.applies(ROW)
def _add_models() -> None:
    for architecture in registered().values():
        for name in architecture.hf_classes:
            _add(name, architecture)
    upstream.put(ROW)


def _add(name: str, architecture: MegatronArchitecture) -> None:
    bridge = bridge_class(architecture)
    registry.MODEL_CONFIG_CONVERTER_REGISTRY[name] = _config_converter(bridge)
    registry.MODEL_INITIALIZER_REGISTRY[name] = _initializer(bridge)
    registry.MODEL_FORWARD_REGISTRY[name] = model_forward_gen()
    registry.MODEL_WEIGHT_CONVERTER_REGISTRY[name] = _weight_converter(architecture)


def _config_converter(bridge: type[ArchitectureBridge]) -> Any:
    def convert(hf_config: Any, dtype: torch.dtype, **overrides: Any) -> Any:
        made = bridge(hf_config, dtype=dtype)
        made.set_extra_args(**{**settings.transformer_overrides(), **overrides})
        return made.config

    return convert


def _initializer(bridge: type[ArchitectureBridge]) -> type:
    class Initializer:
        """As verl's BaseModelInitializer."""

        def __init__(self, tfconfig: Any, hf_config: Any) -> None:
            self._bridge = bridge(hf_config, dtype=tfconfig.params_dtype)
            self._bridge.config = tfconfig

        def initialize(
            self, pre_process: bool = True, post_process: bool = True, value: bool = False, **others: Any
        ) -> Any:
            """Build this rank's part of the model."""
            callbacks = [make_value_model] if value else []
            return self._bridge._model_provider(callbacks)(pre_process, post_process, others.get("vp_stage"))

    return Initializer


def _weight_converter(architecture: MegatronArchitecture) -> type:
    class Converter:
        """As verl's McoreToHFWeightConverterBase."""

        def __init__(self, hf_config: Any, mcore_config: Any) -> None:
            self._names = WeightNames(architecture.weights, hf_config.num_hidden_layers)

        def convert_param(self, name: str, params: list[torch.Tensor]) -> tuple[list[str], list[torch.Tensor]]:
            """Return the checkpoint's names for a tensor that is in parts already."""
            return self._names.hugging_face(name), params

    return Converter


@upstream.replaces(ROW, "verl.models.mcore.registry:get_supported_model")
def get_supported_model(own: Callable[[str], Any], model_type: str) -> Any:
    """verl looks a name up in an Enum, which takes no members from outside."""
    ours = {name for architecture in registered().values() for name in architecture.hf_classes}
    return model_type if model_type in ours else own(model_type)


@upstream.replaces(MERGER_ROW, "verl.model_merger.megatron_model_merger:MegatronModelMerger._merge_state_dicts")
def merge_state_dicts(
    own: Callable[..., dict[str, Any]], merger: Any, model_state_dict_list: Sequence[dict[str, torch.Tensor]]
) -> dict[str, Any]:
    """The merger has one table of names for all models, and knows how to take apart what these have."""
    architecture = registered().get(merger.hf_config.model_type)
    if architecture is None:
        return own(merger, model_state_dict_list)
    names = WeightNames(architecture.weights, merger.hf_config.num_hidden_layers)
    config = registry.hf_to_mcore_config(merger.hf_config, torch.bfloat16)
    first = sum(merger.pipeline_shards[: merger.rank])
    tied = merger.config.tie_word_embedding or getattr(merger.hf_config, "tie_word_embeddings", False)
    found: dict[str, Any] = {}
    for state in model_state_dict_list:
        for name, tensor in state.items():
            if "extra_state" in name or (tied and name == HEAD):
                continue
            own_name = _of_whole_model(name, first)
            parts = names.to_hugging_face(own_name, tensor, config)
            found.update(zip(names.hugging_face(own_name), parts, strict=True))
    return found


def _of_whole_model(name: str, first: int) -> str:
    """A tensor's name with its layer counted from the model's first instead of this rank's."""
    if not name.startswith(_LAYERS):
        return name
    number, _, rest = name.removeprefix(_LAYERS).partition(".")
    return f"{_LAYERS}{int(number) + first}.{rest}"
