# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The bridges between Hugging Face checkpoints and Megatron models: which one is there, and mending mbridge."""

import dataclasses
import importlib
import logging
from importlib import metadata
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.errors import MegatronBridgeError
from verl_hw_core.load_report import describe
from verl_hw_core.megatron import architectures

VALUE_HEAD_ROW = "mbridge-value-head"
"""Ledger row: a critic from a checkpoint without ``lm_head.weight``."""

MAPPING_ROW = "mbridge-tied-mapping"
"""Ledger row: a tied model's weight mapping outlives it."""

SETTINGS_ROW = "mbridge-unknown-settings"
"""Ledger row: a setting that the installed megatron-core does not have."""

ROUTER_ROW = "mbridge-frozen-router"
"""Ledger row: a router without a bias cannot be frozen."""

_HEAD, _SCORE, _SCORE_BIAS = "lm_head.weight", "score.weight", "score.bias"

logger = logging.getLogger("verl_hw_core")


def require_bridge(vanilla: bool) -> None:
    """Import the bridge that the configuration asks for, and mend it.

    Args:
        vanilla: verl's ``vanilla_mbridge``: mbridge if true, else Megatron-Bridge.

    Raises:
        MegatronBridgeError: It is not installed, or does not import.
    """
    if vanilla:
        _import("mbridge", "mbridge, chosen by vanilla_mbridge=True", "pip install --no-deps mbridge einops")
        _load_value_heads()
        _map_weights_by_instance()
        _drop_unknown_settings()
        _freeze_routers()
    else:
        _import(
            "megatron.bridge",
            "Megatron-Bridge, chosen by vanilla_mbridge=False (verl's default)",
            "set actor_rollout_ref.actor.megatron.vanilla_mbridge=True (engine.vanilla_mbridge=True for SFT) to use "
            "mbridge, which needs no TransformerEngine",
        )


def require_architecture(hf_config: Any, use_remove_padding: bool) -> None:
    """Give mbridge the models that packages registered, and check that it has this one.

    Args:
        hf_config: The model's Hugging Face config.
        use_remove_padding: Whether batches will be packed.

    Raises:
        UnregisteredArchitectureError: There is no bridge for the model.
        UnsupportedModelSettingError: It was not registered for such batches.
    """
    from verl_hw_core.megatron import architecture_bridge

    architecture_bridge.install(hf_config.model_type)
    own = architectures.registered().get(hf_config.model_type)
    if own is not None:
        architectures.require_batches(own, use_remove_padding)


def _import(module: str, what: str, remedy: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:
        # Also a bridge that is there and broken: what the user has to do is the same, and the cause says which it is.
        raise MegatronBridgeError(
            f"megatron-core is installed, and what converts Hugging Face models to it cannot be used: {what}, fails "
            f"while it is imported: {describe(error)}. Next: {remedy}"
        ) from error


def _load_value_heads() -> None:
    """A value model whose checkpoint has no ``lm_head.weight``: ``score.weight``, else the head as initialized.

    mbridge asks for the language model head and leaves it out afterwards if its shape is not the value head's.
    """
    import torch
    from mbridge.core.safetensor_io import SafeTensorIO

    own = upstream.original(VALUE_HEAD_ROW, SafeTensorIO, "load_some_hf_weight")

    def load_some_hf_weight(self: Any, hf_weight_names: list[str]) -> dict[str, Any]:
        names = list(dict.fromkeys(hf_weight_names))
        stored = set(self.load_hf_weight_names()) if _HEAD in names else {_HEAD}
        if _HEAD in stored:
            return dict(own(self, names))
        names.remove(_HEAD)
        head = [_SCORE] if _SCORE in stored else []
        weights = dict(own(self, names + head))
        if _SCORE_BIAS in stored and own(self, [_SCORE_BIAS])[_SCORE_BIAS].any():
            logger.warning(
                "%s: Megatron's value head has no bias, so the checkpoint's %s is left out", self.hf_dir, _SCORE_BIAS
            )
        weights[_HEAD] = weights.pop(_SCORE) if head else torch.empty(2, 1)  # two rows: mbridge leaves it out
        return weights

    upstream.replace(VALUE_HEAD_ROW, SafeTensorIO, "load_some_hf_weight", load_some_hf_weight)


def _map_weights_by_instance() -> None:
    """Give every bridge its own mapping: a tied model changes the class's, for all models after it."""
    from mbridge.core.bridge import Bridge

    own = upstream.original(MAPPING_ROW, Bridge, "__init__")

    def init(self: Any, *arguments: Any, **named: Any) -> None:
        self._DIRECT_MAPPING = dict(type(self)._DIRECT_MAPPING)
        own(self, *arguments, **named)

    upstream.replace(MAPPING_ROW, Bridge, "__init__", init)


def _drop_unknown_settings() -> None:
    """Leave out settings that the installed megatron-core does not have, and say which."""
    from mbridge.core.bridge import Bridge

    own = upstream.original(SETTINGS_ROW, Bridge, "set_extra_args")

    def set_extra_args(self: Any, **settings: Any) -> None:
        own(self, **known_settings(settings, self.TransformerConfigClass, "override_transformer_config"))

    upstream.replace(SETTINGS_ROW, Bridge, "set_extra_args", set_extra_args)


def known_settings(settings: dict[str, Any], config_class: Any, where: str) -> dict[str, Any]:
    """Leave out what the installed megatron-core does not have, and say so.

    Args:
        settings: What is wanted.
        config_class: Megatron's TransformerConfig or a subclass.
        where: What it is left out of, for the warning.
    """
    known = {field.name for field in dataclasses.fields(config_class)}
    unknown = sorted(settings.keys() - known)
    if unknown:
        logger.warning(
            "megatron-core %s has no %s: left out of %s",
            metadata.version("megatron-core"),
            ", ".join(f"{name}={settings[name]!r}" for name in unknown),
            where,
        )
    return {name: value for name, value in settings.items() if name in known}


def freeze_router(model: Any, **_: Any) -> None:
    """Leave the routers of experts, and the gates of shared ones, as they are: mbridge's callback for a new model."""
    for layer in model.decoder.layers:
        router, shared = getattr(layer.mlp, "router", None), getattr(layer.mlp, "shared_experts", None)
        for owner, names in ((router, ("weight", "bias")), (shared, ("gate_weight", "gate_bias"))):
            for parameter in (getattr(owner, name, None) for name in names):
                if parameter is not None:
                    parameter.requires_grad_(False)


def _freeze_routers() -> None:
    """verl's ``freeze_moe_router`` where routers have no bias, which is the usual case."""
    from mbridge.utils import post_creation_callbacks

    upstream.replace(ROUTER_ROW, post_creation_callbacks, "freeze_moe_router", freeze_router)
