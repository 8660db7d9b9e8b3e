# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A registered model's tensors: Megatron's name to the checkpoint's names, and one form of a tensor to the other."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch

from verl_hw_core.errors import MegatronArchitectureError
from verl_hw_core.megatron.architectures import Converted

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_QUERY_KEY_VALUE = 3


class WeightNames:
    """The weight mapping of one model."""

    def __init__(self, weights: Mapping[str, str | tuple[str, ...] | Converted], layers: int) -> None:
        self._weights, self._layers = weights, layers

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], tuple[str, ...], Converted | None]]:
        patterns = []
        for name, target in self._weights.items():
            conversion = target if isinstance(target, Converted) else None
            names = target.names if isinstance(target, Converted) else (target,) if isinstance(target, str) else target
            patterns.append((_pattern(name), names, conversion))
        return patterns

    def hugging_face(self, name: str) -> list[str]:
        """Return the checkpoint's names for a tensor of Megatron.

        Raises:
            MegatronArchitectureError: The mapping has no entry for it.
        """
        match, names, _ = self._find(name)
        numbers = match.groupdict()
        if "mtp" in numbers:
            numbers["mtp_layer"] = str(self._layers + int(numbers["mtp"]))
        return [template.format(**numbers) for template in names]

    def to_megatron(self, name: str, tensors: Sequence[torch.Tensor], config: Any) -> torch.Tensor:
        """Put a tensor of Megatron together from the checkpoint's."""
        _, names, conversion = self._find(name)
        if conversion is not None:
            converted: torch.Tensor = conversion.to_megatron(tensors, config)
            return converted
        if len(names) == _QUERY_KEY_VALUE:
            return _join_heads(tensors, config)
        return torch.cat(list(tensors)) if len(names) > 1 else tensors[0]

    def to_hugging_face(self, name: str, tensor: torch.Tensor, config: Any) -> list[torch.Tensor]:
        """Take a tensor of Megatron (whole, not split over ranks) apart into the checkpoint's."""
        _, names, conversion = self._find(name)
        if conversion is not None:
            return list(conversion.to_hugging_face(tensor, config))
        if len(names) == _QUERY_KEY_VALUE:
            return _split_heads(tensor, config)
        return list(tensor.chunk(len(names)))

    def _find(self, name: str) -> tuple[re.Match[str], tuple[str, ...], Converted | None]:
        for pattern, names, conversion in self._patterns:
            match = pattern.fullmatch(name)
            if match is not None:
                return match, names, conversion
        raise MegatronArchitectureError(
            f"the model has a tensor {name} that the weights of its registration do not map. Add it, or a layer spec "
            "without it"
        )


def _pattern(name: str) -> re.Pattern[str]:
    parts = _PLACEHOLDER.split(name)  # text, placeholder, text, ...
    text = [f"(?P<{part}>[0-9]+)" if index % 2 else re.escape(part) for index, part in enumerate(parts)]
    return re.compile("".join(text))


def _join_heads(tensors: Sequence[torch.Tensor], config: Any) -> torch.Tensor:
    """Megatron's order: for each group its query heads, its key, its value."""
    rows = [tensor.unflatten(0, (config.num_query_groups, -1)) for tensor in tensors]
    return torch.cat(rows, dim=1).flatten(0, 1)


def _split_heads(tensor: torch.Tensor, config: Any) -> list[torch.Tensor]:
    heads, channels = config.num_attention_heads // config.num_query_groups, config.kv_channels  # of a group, of a head
    rows = tensor.unflatten(0, (config.num_query_groups, -1))
    parts = rows.split([heads * channels, channels, channels], dim=1)
    return [part.flatten(0, 1).contiguous() for part in parts]
