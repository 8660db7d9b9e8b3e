# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Losses and what they are made of: log-probabilities, entropy, the clipped policy loss."""

from typing import Any

import torch
from torch.nn import functional

from verl_hw_tools.conformance.checks._operator_case import Inputs, OperatorCase, wide

_LOG_PROBS = "log-probabilities of actor, reference and rollout correction"


def _randn(generator: torch.Generator, *shape: int) -> Any:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _logits(g: torch.Generator) -> Inputs:
    return {"logits": _randn(g, 6, 37) * 3, "labels": torch.randint(0, 37, (6,), generator=g)}


def _ignoring(g: torch.Generator) -> Inputs:
    inputs = _logits(g)
    inputs["labels"][2] = -100
    return inputs


def _gathered(i: Inputs) -> Any:
    return functional.log_softmax(wide(i["logits"]), dim=-1).gather(-1, i["labels"].unsqueeze(-1)).squeeze(-1)


def _by_logsumexp(i: Inputs) -> Any:
    logits = wide(i["logits"])
    chosen = torch.gather(logits, -1, i["labels"].unsqueeze(-1)).squeeze(-1)
    return chosen - torch.stack([torch.logsumexp(row, dim=-1) for row in logits])


def _entropy(i: Inputs) -> Any:
    logits = wide(i["logits"])
    return torch.logsumexp(logits, dim=-1) - (functional.softmax(logits, dim=-1) * logits).sum(-1)


def _policy_inputs(g: torch.Generator) -> Inputs:
    old = _randn(g, 4, 9)
    mask = torch.rand(4, 9, generator=g) > 0.3
    # Ratios away from the clip's edges, where rounding would choose the other branch.
    step = torch.where(torch.rand(4, 9, generator=g) > 0.5, 0.05, 0.4).double()
    return {"new": old + step, "old": old, "advantage": _randn(g, 4, 9), "mask": mask}


def _policy_loss(i: Inputs) -> Any:
    ratio = torch.exp(torch.clamp(i["new"] - i["old"], -20.0, 20.0))
    plain, clipped = -i["advantage"] * ratio, -i["advantage"] * torch.clamp(ratio, 0.8, 1.2)
    loss = torch.where(i["advantage"] < 0, torch.max(plain, clipped).clamp(max=30.0), torch.max(plain, clipped))
    return (loss * i["mask"]).sum() / i["mask"].sum()


LOSSES: tuple[OperatorCase, ...] = (
    OperatorCase(
        name="cross_entropy",
        title="cross-entropy with ignored labels",
        blocks="supervised training",
        make=_ignoring,
        compute=lambda i: functional.cross_entropy(i["logits"], i["labels"], ignore_index=-100),
    ),
    OperatorCase(
        name="cross_entropy_sum",
        title="cross-entropy, one loss a token",
        blocks="supervised training, log-probabilities",
        make=_logits,
        compute=lambda i: functional.cross_entropy(i["logits"], i["labels"], reduction="none"),
    ),
    OperatorCase(
        name="log_probs_gather", title="log-softmax and gather", blocks=_LOG_PROBS, make=_logits, compute=_gathered
    ),
    OperatorCase(
        name="log_probs_logsumexp", title="gather and logsumexp", blocks=_LOG_PROBS, make=_logits, compute=_by_logsumexp
    ),
    OperatorCase(
        name="entropy",
        title="entropy of logits",
        blocks="entropy loss and metric",
        make=lambda g: {"logits": _logits(g)["logits"]},
        compute=_entropy,
    ),
    OperatorCase(
        name="policy_loss",
        title="clipped policy loss",
        blocks="PPO, GRPO",
        make=_policy_inputs,
        compute=_policy_loss,
        dtypes=(torch.float32,),
        constants=("old", "advantage"),
    ),
    OperatorCase(
        name="masked_mean",
        title="masked mean and variance",
        blocks="advantages, metrics",
        make=lambda g: {"x": _randn(g, 5, 17), "mask": torch.rand(5, 17, generator=g) > 0.4},
        compute=lambda i: torch.stack(
            [
                (i["x"] * i["mask"]).sum() / i["mask"].sum(),
                i["x"].masked_select(i["mask"]).var(),
                i["x"].masked_fill(~i["mask"], 0.0).square().mean(),
            ]
        ),
        dtypes=(torch.float32,),
    ),
)
