# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""mbridge's bridge for a registered model. Imports megatron and mbridge; only a process that needs them does."""

import logging
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from mbridge.core import LLMBridge, register_model
from mbridge.core.bridge import _MODEL_REGISTRY
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_mtp_block_spec
from megatron.core.transformer import MLATransformerConfig, TransformerConfig
from verl.utils.megatron_utils import get_hf_rope_theta

from verl_hw_core.errors import MegatronArchitectureError
from verl_hw_core.megatron.architectures import (
    HEAD,
    MegatronArchitecture,
    registered,
    require_batches,
    require_known,
)
from verl_hw_core.megatron.bridges import freeze_router, known_settings
from verl_hw_core.megatron.weight_names import WeightNames

logger = logging.getLogger("verl_hw_core")

_EMBEDDING = "embedding.word_embeddings.weight"
# Without a value Megatron takes one of its own, and says nothing.
_REQUIRED = ("num_layers", "hidden_size", "num_attention_heads", "ffn_hidden_size", "layernorm_epsilon")
# RL trains neither the router nor its balance; experts' tensors have the names that bridges expect.
_RL_CONVENTIONS = {
    "moe_router_load_balancing_type": "none",
    "moe_aux_loss_coeff": 0.0,
    "moe_router_bias_update_rate": 0.0,
    "moe_grouped_gemm": True,
}


class ArchitectureBridge(LLMBridge):  # type: ignore[misc, unused-ignore]
    """A bridge of which everything that is the model's own comes from its registration."""

    architecture: ClassVar[MegatronArchitecture]

    def __init__(self, hf_config: Any, *arguments: Any, **named: Any) -> None:
        self._CONFIG_MAPPING = {
            field: source
            for field, source in LLMBridge._CONFIG_MAPPING.items()
            if isinstance(source, tuple) or hasattr(hf_config, source)
        }
        super().__init__(hf_config, *arguments, **named)

    def _build_config(self) -> Any:
        wanted = self.architecture.transformer_config(self.hf_config)
        own = known_settings(wanted, self.TransformerConfigClass, f"the config of {self.architecture.model_type}")
        missing = [name for name in _REQUIRED if name not in own and name not in self._CONFIG_MAPPING]
        if missing:
            raise MegatronArchitectureError(
                f"{self.architecture.model_type}: its config has nothing for {', '.join(missing)} under the usual "
                "names; transformer_config of its registration must return them"
            )
        conventions = _RL_CONVENTIONS if own.get("num_moe_experts") else {}
        config = self._build_base_config(**{**own, **conventions})
        self.names = WeightNames(self.architecture.weights, config.num_layers)
        return config

    def _get_gptmodel_args(self) -> dict[str, Any]:
        arguments = {
            "vocab_size": self.hf_config.vocab_size,
            "max_sequence_length": self.hf_config.max_position_embeddings,
            "position_embedding_type": "rope",
            **self.architecture.model_arguments(self.hf_config),
        }
        if arguments["position_embedding_type"] == "rope":
            arguments.setdefault("rotary_base", get_hf_rope_theta(self.hf_config))
        if self.config.mtp_num_layers:
            block, stage = self._built
            arguments["mtp_block_spec"] = get_gpt_mtp_block_spec(
                self.config, block, use_transformer_engine=True, vp_stage=stage
            )
        return arguments

    def _get_transformer_layer_spec(self, vp_stage: int | None = None) -> Any:
        self.has_vp_stage = True  # mbridge's: also the model takes it
        # "TransformerEngine" is where our local layers are put if it is missing.
        block = get_gpt_decoder_block_spec(
            self.config, use_transformer_engine=True, normalization=self.config.normalization, vp_stage=vp_stage
        )
        block.layer_specs = [self.architecture.layer_spec(layer, self.config) for layer in block.layer_specs]
        self._built = (block, vp_stage)
        return block

    def _model_provider(self, post_model_creation_callbacks: list[Callable[..., None]]) -> Any:
        callbacks = [*post_model_creation_callbacks]
        if self.config.num_moe_experts and self.architecture.freeze_router:
            callbacks.append(freeze_router)
        return super()._model_provider(callbacks)

    def _get_hf_shared_weight_keys(self) -> list[str]:
        return self.names.hugging_face(_EMBEDDING) if self._is_tied() else []

    def _is_tied(self) -> bool:
        return bool(getattr(self.hf_config, "tie_word_embeddings", False))

    def _weight_name_mapping_mcore_to_hf(self, mcore_weights_name: str) -> list[str]:
        tied = mcore_weights_name == HEAD and self._is_tied()
        return self.names.hugging_face(_EMBEDDING if tied else mcore_weights_name)

    def _weight_to_mcore_format(self, mcore_weights_name: str, hf_weights: list[torch.Tensor]) -> torch.Tensor:
        return self.names.to_megatron(mcore_weights_name, hf_weights, self.config)

    def _weight_to_hf_format(
        self, mcore_weights_name: str, mcore_weights: torch.Tensor
    ) -> tuple[list[str], list[torch.Tensor]]:
        names = self._weight_name_mapping_mcore_to_hf(mcore_weights_name)
        return names, self.names.to_hugging_face(mcore_weights_name, mcore_weights, self.config)


def bridge_class(architecture: MegatronArchitecture) -> type[ArchitectureBridge]:
    """Return the bridge's class for a registered model."""
    names = {
        "architecture": architecture,
        "TransformerConfigClass": MLATransformerConfig if architecture.latent_attention else TransformerConfig,
    }
    return type(f"{architecture.model_type}Bridge", (ArchitectureBridge,), names)


def install(model_type: str) -> None:
    """Give mbridge the bridges of all registered models, and check that it has one for a Hugging Face model type.

    Raises:
        UnregisteredArchitectureError: It has none.
    """
    for name, architecture in registered().items():
        present = _MODEL_REGISTRY.get(name)
        if getattr(present, "architecture", None) is architecture:
            continue
        if present is not None and not issubclass(present, ArchitectureBridge):
            logger.warning("The registered Megatron architecture of %s takes the place of mbridge's own", name)
        register_model(name)(bridge_class(architecture))
    require_known(model_type, _MODEL_REGISTRY)


def require_architecture(hf_config: Any, use_remove_padding: bool) -> None:
    """As :func:`install`, and check that the model was registered for the (packed or padded) batches that it will get.

    Raises:
        UnregisteredArchitectureError: There is no bridge for the model.
        UnsupportedModelSettingError: It was not registered for such batches.
    """
    install(hf_config.model_type)
    own = registered().get(hf_config.model_type)
    if own is not None:
        require_batches(own, use_remove_padding)
