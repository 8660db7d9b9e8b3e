# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a model computes on its way: outputs of the embedding, of every layer and of a layer's two parts.

With them a difference of the logits is followed back to the first place that differs.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

_ATTENTION = ("attn", "attention")
_MLP = ("mlp", "moe", "feed_forward", "ffn")

Places = dict[str, torch.nn.Module]
"""Modules by place: ``embedding``, ``layer 0``, ``layer 0 attention``, ``layer 0 mlp``, ..."""


def hugging_face_places(model: Any, layers: int) -> Places:
    """Find the places of a transformers model; what has unusual names is left out."""
    places: Places = {"embedding": model.get_input_embeddings()}
    lists = (module for module in model.modules() if isinstance(module, torch.nn.ModuleList) and len(module) == layers)
    for index, layer in enumerate(next(lists, ())):
        _add_layer(places, index, layer)
    return places


def megatron_places(model: Any) -> Places:
    """Find the places of a GPTModel."""
    places: Places = {"embedding": model.embedding}
    for index, layer in enumerate(model.decoder.layers):
        _add_layer(places, index, layer)
    return places


def _add_layer(places: Places, index: int, layer: torch.nn.Module) -> None:
    places[f"layer {index}"] = layer
    for part, words in (("attention", _ATTENTION), ("mlp", _MLP)):
        for name, child in layer.named_children():
            if any(word in name for word in words) and not any(word in name for word in ("norm", "bda")):
                places.setdefault(f"layer {index} {part}", child)


@contextmanager
def recorded(places: Places, into: dict[str, torch.Tensor]) -> Iterator[None]:
    """Write each place's output to ``into`` meanwhile."""

    def recorder(name: str) -> Callable[..., None]:
        def record(_module: Any, _inputs: Any, output: Any) -> None:
            first, *rest = output if isinstance(output, tuple) else (output,)
            # Megatron's parts return their bias apart from their output.
            bias = rest[0] if rest and isinstance(rest[0], torch.Tensor) and rest[0].dim() == 1 else None
            into[name] = (first if bias is None else first + bias).detach().cpu()

        return record

    with ExitStack() as stack:
        for name, module in places.items():
            stack.callback(module.register_forward_hook(recorder(name)).remove)
        yield
