# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a package declares so that our Megatron engines train a model that the bridge does not know.

Importing this module imports neither torch nor megatron. See docs/new_model.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal, get_args

from verl_hw_core.errors import MegatronArchitectureError, UnregisteredArchitectureError, UnsupportedModelSettingError
from verl_hw_core.facts.vendors import call_entry_points

ENTRY_POINTS = "verl_hw.megatron_architectures"
"""Entry-point group whose objects are called without arguments before the registry is first read."""

GUIDE = "docs/new_model.md"
HEAD, HUGGING_FACE_HEAD = "output_layer.weight", "lm_head.weight"

Batches = Literal["packed", "padded"]


@dataclass(frozen=True)
class Converted:
    """A Megatron tensor that is neither one of the checkpoint's nor put together by the usual rules.

    Attributes:
        names: Its tensors in the checkpoint, with the placeholders of :attr:`MegatronArchitecture.weights`.
        to_megatron: From those tensors (whole, not split over ranks) and the TransformerConfig to Megatron's tensor.
        to_hugging_face: The way back. Both must be linear, since gradients are compared through them.
    """

    names: tuple[str, ...]
    to_megatron: Callable[[Sequence[Any], Any], Any]
    to_hugging_face: Callable[[Any, Any], Sequence[Any]]


def _unchanged(layer: Any, _config: Any) -> Any:
    return layer


def _nothing(_hf_config: Any) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True)
class MegatronArchitecture:
    """A model for the Megatron backend.

    Attributes:
        model_type: ``model_type`` of its Hugging Face config.
        hf_classes: Names that the config's ``architectures`` may have.
        transformer_config: From the Hugging Face config to fields of megatron-core's TransformerConfig, beside those
            that follow from the usual names (``num_hidden_layers``, ``hidden_size``, ``rms_norm_eps``, ...).
        weights: Megatron's tensors and, for each, the checkpoint's: one name, or several that are put together (three
            for query, key and value, two that follow each other), or a :class:`Converted`. ``{layer}`` and ``{expert}``
            stand for numbers; ``{mtp}`` for a layer of the MTP block and ``{mtp_layer}`` for the same counted on from
            the model's layers.
        layer_spec: From a layer's ModuleSpec as megatron-core has it, and the TransformerConfig, to the one to use.
        model_arguments: From the Hugging Face config to arguments of GPTModel, as ``rotary_percent``.
        batches: Forms of batches that the layer computes.
        latent_attention: Whether the config is megatron-core's MLATransformerConfig.
        freeze_router: Whether the router of experts is left as it is, as RL does.
    """

    model_type: str
    hf_classes: tuple[str, ...]
    transformer_config: Callable[[Any], dict[str, Any]]
    weights: Mapping[str, str | tuple[str, ...] | Converted]
    layer_spec: Callable[[Any, Any], Any] = _unchanged
    model_arguments: Callable[[Any], dict[str, Any]] = _nothing
    batches: tuple[Batches, ...] = field(default=get_args(Batches))
    latent_attention: bool = False
    freeze_router: bool = True

    def __post_init__(self) -> None:
        if not self.batches or set(self.batches) - set(get_args(Batches)):
            raise MegatronArchitectureError(
                f"{self.model_type}: batches={self.batches!r} must name some of {', '.join(get_args(Batches))}"
            )
        if isinstance(self.hf_classes, str) or not self.hf_classes:
            raise MegatronArchitectureError(
                f"{self.model_type}: hf_classes={self.hf_classes!r} must be a tuple of class names, as the config's "
                "architectures has them"
            )
        if self.weights.get(HEAD) != HUGGING_FACE_HEAD:
            # mbridge tells a value head from a language model's by this name.
            raise MegatronArchitectureError(
                f"{self.model_type}: weights must map {HEAD!r} to {HUGGING_FACE_HEAD!r}, found "
                f"{self.weights.get(HEAD)!r}. Name the head so in the Hugging Face model"
            )


_registered: dict[str, MegatronArchitecture] = {}


def register_architecture(architecture: MegatronArchitecture) -> None:
    """Register a model; another one of the same model type replaces it. Takes effect when an engine is built."""
    _registered[architecture.model_type] = architecture


def registered() -> dict[str, MegatronArchitecture]:
    """Return what is registered, by model type, entry points included."""
    call_entry_points(ENTRY_POINTS, "Megatron architectures")
    return dict(_registered)


def require_known(model_type: str, known: Iterable[str]) -> None:
    """Check that a model, by the ``model_type`` of its Hugging Face config, is among those known to have a bridge.

    Raises:
        UnregisteredArchitectureError: It is not among them.
    """
    names = sorted(known)
    if model_type in names:
        return
    near = get_close_matches(model_type, names, n=3, cutoff=0.5)
    raise UnregisteredArchitectureError(
        f"strategy=megatron has no bridge for model_type {model_type!r}. "
        + (f"Nearest: {', '.join(near)}. " if near else "")
        + f"All: {', '.join(names)}. Register it from a package of yours ({GUIDE}), or train with strategy fsdp2"
    )


def require_batches(architecture: MegatronArchitecture, use_remove_padding: bool) -> None:
    """Check that a model computes the batches that verl will give it.

    Raises:
        UnsupportedModelSettingError: It was not registered for them.
    """
    wanted = "packed" if use_remove_padding else "padded"
    if wanted not in architecture.batches:
        raise UnsupportedModelSettingError(
            f"{architecture.model_type} is registered for {', '.join(architecture.batches)} batches only, and the "
            f"configuration asks for {wanted} ones: set use_remove_padding={not use_remove_padding}"
        )
