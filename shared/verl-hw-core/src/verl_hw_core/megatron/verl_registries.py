# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Registered models in verl's own four registries: training does not read them any more, merging checkpoints does.

Imports megatron.
"""

from collections.abc import Sequence
from typing import Any

import torch
from verl.model_merger.megatron_model_merger import MegatronModelMerger
from verl.models.mcore import registry
from verl.models.mcore.mbridge import make_value_model
from verl.models.mcore.model_forward import model_forward_gen

from verl_hw_core import upstream
from verl_hw_core.megatron import mends
from verl_hw_core.megatron.architecture_bridge import ArchitectureBridge, bridge_class
from verl_hw_core.megatron.architectures import HEAD, MegatronArchitecture, registered
from verl_hw_core.megatron.weight_names import WeightNames

ROW = "verl-megatron-registries"
"""Ledger row of the names that verl's registries have."""

MERGER_ROW = "verl-megatron-merger"
"""Ledger row of the merger's own table of weight names."""

_LAYERS = "decoder.layers."


def install() -> None:
    """Put all registered models into verl's registries and its merger of checkpoints; a second call adds new ones."""
    models = registered()
    for architecture in models.values():
        for name in architecture.hf_classes:
            _add(name, architecture)
    _let_names_be_looked_up()
    _merge_by_registration()


def _add(name: str, architecture: MegatronArchitecture) -> None:
    bridge = bridge_class(architecture)
    registry.MODEL_CONFIG_CONVERTER_REGISTRY[name] = _config_converter(bridge)
    registry.MODEL_INITIALIZER_REGISTRY[name] = _initializer(bridge)
    registry.MODEL_FORWARD_REGISTRY[name] = model_forward_gen()
    registry.MODEL_WEIGHT_CONVERTER_REGISTRY[name] = _weight_converter(architecture)


def _config_converter(bridge: type[ArchitectureBridge]) -> Any:
    def convert(hf_config: Any, dtype: torch.dtype, **overrides: Any) -> Any:
        made = bridge(hf_config, dtype=dtype)
        made.set_extra_args(**{**mends.transformer_overrides(), **overrides})
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


def _let_names_be_looked_up() -> None:
    """verl looks a name up in an Enum, which takes no members from outside."""
    own = upstream.original(ROW, registry, "get_supported_model")

    def get_supported_model(model_type: str) -> Any:
        ours = {name for architecture in registered().values() for name in architecture.hf_classes}
        return model_type if model_type in ours else own(model_type)

    upstream.replace(ROW, registry, "get_supported_model", get_supported_model)


def _merge_by_registration() -> None:
    """The merger has one table of names for all models, and knows how to take apart what these have."""
    own = upstream.original(MERGER_ROW, MegatronModelMerger, "_merge_state_dicts")

    def _merge_state_dicts(self: Any, model_state_dict_list: Sequence[dict[str, torch.Tensor]]) -> dict[str, Any]:
        architecture = registered().get(self.hf_config.model_type)
        if architecture is None:
            merged: dict[str, Any] = own(self, model_state_dict_list)
            return merged
        names = WeightNames(architecture.weights, self.hf_config.num_hidden_layers)
        config = registry.hf_to_mcore_config(self.hf_config, torch.bfloat16)
        first = sum(self.pipeline_shards[: self.rank])
        tied = self.config.tie_word_embedding or getattr(self.hf_config, "tie_word_embeddings", False)
        found: dict[str, Any] = {}
        for state in model_state_dict_list:
            for name, tensor in state.items():
                if "extra_state" in name or (tied and name == HEAD):
                    continue
                own_name = _of_whole_model(name, first)
                parts = names.to_hugging_face(own_name, tensor, config)
                found.update(zip(names.hugging_face(own_name), parts, strict=True))
        return found

    upstream.replace(MERGER_ROW, MegatronModelMerger, "_merge_state_dicts", _merge_state_dicts)


def _of_whole_model(name: str, first: int) -> str:
    """A tensor's name with its layer counted from the model's first instead of this rank's."""
    if not name.startswith(_LAYERS):
        return name
    number, _, rest = name.removeprefix(_LAYERS).partition(".")
    return f"{_LAYERS}{int(number) + first}.{rest}"
