# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A tiny transformer in plain torch, its data, and its training on the CPU, to which sharded training is compared."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, LAYERS, VOCABULARY, LENGTH, ROWS = 32, 4, 2, 48, 12, 2
LEARNING_RATE, CLIP = 1e-2, 1.0
STEPS = 3


class Block(nn.Module):  # type: ignore[misc]  # torch is Any to the checker
    """Attention and a gated feed-forward, each behind an RMSNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.RMSNorm(WIDTH, eps=1e-6), nn.RMSNorm(WIDTH, eps=1e-6)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Any) -> Any:
        """Hidden states (rows, length, width) to the same shape."""
        rows, length, _ = x.shape
        q, k, v = (
            part.view(rows, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in self.qkv(self.first_norm(x)).chunk(3, dim=-1)
        )
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, length, WIDTH))
        normed = self.second_norm(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class TinyModel(nn.Module):  # type: ignore[misc]  # torch is Any to the checker
    """Embedding, blocks, norm and an output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH, eps=1e-6), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: Any) -> Any:
        """Token ids (rows, length) to logits (rows, length, vocabulary)."""
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def build() -> TinyModel:
    """Return the model with the same weights on every rank, on the CPU, without touching the global seed."""
    model = TinyModel()
    generator = torch.Generator().manual_seed(17)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(drawn / parameter.shape[-1] ** 0.5)
            else:
                parameter.copy_(drawn * 0.1 + float("norm" in name))
    return model


def optimizer_of(model: Any) -> Any:
    """Return the optimizer. Its eps keeps rounding of gradients near zero from deciding the direction of a step."""
    return torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, eps=1e-4)


def batch(step: int, rank: int) -> Any:
    """Return the token ids of one rank in one step, on the CPU: (rows, length + 1)."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randint(0, VOCABULARY, (ROWS, LENGTH + 1), generator=generator)


def loss_of(model: Any, ids: Any) -> Any:
    """Return the mean cross-entropy of the next tokens, in fp32."""
    logits = model(ids[:, :-1])
    logits = logits if logits.dtype == torch.float64 else logits.float()
    return functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


@dataclass(frozen=True)
class Training:
    """What a training gave.

    Attributes:
        losses: Mean loss of all ranks in each step.
        norms: Norm of the gradients before clipping in each step.
        parameters: The parameters after the last step, whole, on the CPU, by name.
    """

    losses: list[float]
    norms: list[float]
    parameters: dict[str, Any]


def train_on_cpu(world_size: int) -> Training:
    """Train in this process, in float64, on what all ranks together would see."""
    model = build().double()
    optimizer = optimizer_of(model)
    losses, norms = [], []
    for step in range(STEPS):
        loss = loss_of(model, torch.cat([batch(step, rank) for rank in range(world_size)]))
        loss.backward()
        norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), CLIP)))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return Training(losses, norms, {name: value.detach() for name, value in model.named_parameters()})
