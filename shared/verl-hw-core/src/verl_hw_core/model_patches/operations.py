# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The operations that can be fused: a portable form from torch operations, and how transformers' models call it."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

Form = Callable[..., Any]
"""A function with the signature of an operation's portable form."""


def rms_norm(hidden: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Scale the last dimension of ``hidden`` to a root mean square of one, then by ``weight``.

    Args:
        hidden: (..., size).
        weight: (size,).
        eps: Added to the mean square.

    Returns:
        (..., size). The mean is taken in float32; the product has the dtype that torch promotes to.
    """
    exact = hidden.float()
    scaled = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + eps)
    return weight * scaled.to(hidden.dtype)


def rotary(
    query: torch.Tensor, key: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, unsqueeze_dim: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotate the halves of each head by the token's angle.

    Args:
        query: (batch, heads, tokens, size), or with heads and tokens exchanged.
        key: The same with the key's heads.
        cos: (batch, tokens, size), the angles' cosines, the second half repeating the first.
        sin: The same of sines.
        unsqueeze_dim: Dimension of the heads.

    Returns:
        Rotated query and key.
    """
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return query * cos + _turned(query) * sin, key * cos + _turned(key) * sin


def multimodal_rotary(
    query: torch.Tensor,
    key: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    mrope_section: list[int],
    unsqueeze_dim: int = 1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """:func:`rotary` where time, height and width each turn a section of the head.

    ``cos`` and ``sin`` are of shape (3, batch, tokens, size) here; ``mrope_section`` has the sizes of the three
    sections in half a head.
    """
    sections = [*mrope_section, *mrope_section]
    cos, sin = (
        torch.cat([part[index % 3] for index, part in enumerate(angles.split(sections, dim=-1))], dim=-1)
        for angles in (cos, sin)
    )
    return rotary(query, key, cos, sin, unsqueeze_dim)


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return ``silu(gate) * up``, all of one shape."""
    return functional.silu(gate) * up


def _turned(heads: torch.Tensor) -> torch.Tensor:
    first, second = heads.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


PORTABLE: dict[str, Form] = {
    "rms_norm": rms_norm,
    "rotary": rotary,
    "multimodal_rotary": multimodal_rotary,
    "swiglu": swiglu,
}


def for_model(operation: str, form: Form) -> Form:
    """Return what replaces the site of an operation in a transformers model: a function or a ``forward`` method."""
    if operation == "rms_norm":
        return _norm_forward(form)
    return _mlp_forward(form) if operation == "swiglu" else form


def _norm_forward(form: Form) -> Form:
    def forward(self: Any, hidden_states: torch.Tensor) -> Any:
        return form(hidden_states, self.weight, self.variance_epsilon)

    return forward


def _mlp_forward(form: Form) -> Form:
    def forward(self: Any, hidden_states: torch.Tensor) -> Any:
        gate, up = self.gate_proj(hidden_states), self.up_proj(hidden_states)
        silu = type(self.act_fn).__name__ in ("SiLU", "SiLUActivation")  # a configuration may ask for another one
        return self.down_proj(form(gate, up) if silu else self.act_fn(gate) * up)

    return forward
