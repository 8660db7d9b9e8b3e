# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The bridges between Hugging Face checkpoints and Megatron models: which one is there, and mending mbridge."""

import dataclasses
import importlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from verl_hw_core import upstream
from verl_hw_core.errors import MegatronArchitectureError, MegatronBridgeError
from verl_hw_core.load_report import describe
from verl_hw_core.upstream import installed_state

# Ledger rows.
VALUE_HEAD_ROW = "mbridge-value-head"  # a critic from a checkpoint without lm_head.weight
MAPPING_ROW = "mbridge-tied-mapping"  # a tied model's weight mapping outlives it
SETTINGS_ROW = "mbridge-unknown-settings"  # a setting that the installed megatron-core does not have
ROUTER_ROW = "mbridge-frozen-router"  # a router without a bias cannot be frozen

_HEAD, _SCORE, _SCORE_BIAS = "lm_head.weight", "score.weight", "score.bias"

logger = logging.getLogger("verl_hw_core")


def require_bridge(vanilla: bool) -> None:
    """Import the bridge that verl's ``vanilla_mbridge`` asks for (mbridge, else Megatron-Bridge), and mend it.

    Raises:
        MegatronBridgeError: It is not installed, or does not import.
        UpstreamPatchError: It lacks a name without which a model would be built or loaded wrongly.
    """
    if vanilla:
        _import("mbridge", "mbridge, chosen by vanilla_mbridge=True", "pip install --no-deps mbridge einops")
        for row in (VALUE_HEAD_ROW, MAPPING_ROW, SETTINGS_ROW, ROUTER_ROW):
            upstream.apply(row)
        upstream.check("mbridge-architectures")
        upstream.require_applied()
    else:
        _import(
            "megatron.bridge",
            "Megatron-Bridge, chosen by vanilla_mbridge=False (verl's default)",
            "set actor_rollout_ref.actor.megatron.vanilla_mbridge=True (engine.vanilla_mbridge=True for SFT) to use "
            "mbridge, which needs no TransformerEngine",
        )


def _import(module: str, what: str, remedy: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:
        # Also a bridge that is there and broken: what the user has to do is the same, and the cause says which it is.
        raise MegatronBridgeError(
            f"megatron-core is installed, and what converts Hugging Face models to it cannot be used: {what}, fails "
            f"while it is imported: {describe(error)}. Next: {remedy}"
        ) from error


@contextmanager
def buildable(model_type: str) -> Iterator[None]:
    """Name the bridge and the versions where mbridge's own code cannot read a model's config.

    Raises:
        MegatronArchitectureError: It cannot.
    """
    try:
        yield
    except (TypeError, AttributeError, KeyError) as error:
        packages = ("mbridge", "megatron-core", "transformers")
        versions = ", ".join(f"{name} {installed_state.installed_version(name)}" for name in packages)
        raise MegatronArchitectureError(
            f"mbridge's bridge of {model_type} cannot be built ({versions}): {describe(error)}. Next: train the model "
            "with actor_rollout_ref.actor.strategy=fsdp2 (engine=fsdp2 for SFT), or register its architecture in the "
            "bridge's place (docs/new_model.md)"
        ) from error


def complete_experts(bridge: Any, tf_config: Any) -> None:
    """Have the gate of a shared expert built where mbridge's bridge has a name for its weight: changes ``tf_config``.

    mbridge 0.15 maps the weight for qwen2_moe and does not ask Megatron for the gate, so that its checkpoint's tensors
    have no place and another model is trained.
    """
    if "shared_experts.gate_weight" in getattr(bridge, "_MLP_MAPPING", {}):
        tf_config.moe_shared_expert_gate = True


@upstream.replaces(VALUE_HEAD_ROW, "mbridge.core.safetensor_io:SafeTensorIO.load_some_hf_weight")
def load_some_hf_weight(own: Callable[..., Any], files: Any, hf_weight_names: list[str]) -> dict[str, Any]:
    """A value model whose checkpoint has no ``lm_head.weight``: ``score.weight``, else the head as initialized.

    mbridge asks for the language model head and leaves it out afterwards if its shape is not the value head's.
    """
    import torch

    names = list(dict.fromkeys(hf_weight_names))
    stored = set(files.load_hf_weight_names()) if _HEAD in names else {_HEAD}
    if _HEAD in stored:
        return dict(own(files, names))
    names.remove(_HEAD)
    head = [_SCORE] if _SCORE in stored else []
    weights = dict(own(files, names + head))
    if _SCORE_BIAS in stored and own(files, [_SCORE_BIAS])[_SCORE_BIAS].any():
        logger.warning(
            "%s: Megatron's value head has no bias, so the checkpoint's %s is left out", files.hf_dir, _SCORE_BIAS
        )
    weights[_HEAD] = weights.pop(_SCORE) if head else torch.empty(2, 1)  # two rows: mbridge leaves it out
    return weights


@upstream.replaces(MAPPING_ROW, "mbridge.core.bridge:Bridge.__init__")
def init_bridge(own: Callable[..., None], bridge: Any, *arguments: Any, **named: Any) -> None:
    """Give every bridge its own mapping: a tied model changes the class's, for all models after it."""
    bridge._DIRECT_MAPPING = dict(type(bridge)._DIRECT_MAPPING)
    own(bridge, *arguments, **named)


@upstream.replaces(SETTINGS_ROW, "mbridge.core.bridge:Bridge.set_extra_args")
def set_extra_args(own: Callable[..., None], bridge: Any, **settings: Any) -> None:
    """Leave out settings that the installed megatron-core does not have, and say which."""
    own(bridge, **known_settings(settings, bridge.TransformerConfigClass, "override_transformer_config"))


def known_settings(settings: dict[str, Any], config_class: Any, where: str) -> dict[str, Any]:
    """Leave out what the installed megatron-core's TransformerConfig, or this subclass, does not have.

    A warning says so, and that it is left out of ``where``.
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


@upstream.replaces(ROUTER_ROW, "mbridge.utils.post_creation_callbacks:freeze_moe_router")
def freeze_moe_router(_own: Any, model: Any, *_: Any, **__: Any) -> None:
    """As :func:`freeze_router`; verl's own fails where routers have no bias, which is the usual case."""
    freeze_router(model)
