# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""From logits to tokens: every row of a batch by its own parameters and its own random number.

The order of the steps is vLLM's: repetition penalty, temperature, min-p, top-k, top-p. A token is the first whose
cumulated probability exceeds the row's number, so that one number, drawn on the host, decides it on any device.
"""

from collections.abc import Sequence

import torch

from verl_hw_core.rollout.sampling import SamplingParams


def draw(
    logits: torch.Tensor,
    params: Sequence[SamplingParams],
    numbers: Sequence[float],
    seen: torch.Tensor | None,
    *,
    raw_log_probs: bool = False,
) -> tuple[list[int], list[float]]:
    """Draw one token a row.

    Args:
        logits: (rows, vocabulary), of any floating dtype.
        params: Sampling parameters of each row.
        numbers: A number in [0, 1) for each row.
        seen: (rows, vocabulary) of bool, true for tokens of the row's prompt and answer; needed where a row has a
            repetition penalty.
        raw_log_probs: Return the log-probabilities of the model's own distribution (vLLM's ``raw_logprobs``) and not
            those of the distribution that was drawn from (``processed_logprobs``). For greedy rows the latter has
            temperature 1.

    Returns:
        The tokens and their log-probabilities. With temperature alone, the latter are what verl's trainer computes.
    """
    logits = logits.float()
    raw = logits.log_softmax(-1) if raw_log_probs else None
    scaled = _scale(logits, params, seen)
    if any(row.filters for row in params):
        scaled = _filter(scaled, params)
    log_probs = scaled.log_softmax(-1)
    tokens = _pick(log_probs, params, numbers)
    chosen = (log_probs if raw is None else raw).gather(-1, tokens[:, None])[:, 0]
    return tokens.tolist(), chosen.tolist()


def _column(values: Sequence[float], like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32).to(like.device)[:, None]


def _scale(logits: torch.Tensor, params: Sequence[SamplingParams], seen: torch.Tensor | None) -> torch.Tensor:
    if seen is not None:
        penalty = _column([row.repetition_penalty for row in params], logits)
        penalised = torch.where(logits > 0, logits / penalty, logits * penalty)
        logits = torch.where(seen, penalised, logits)
    return logits / _column([1.0 if row.greedy else row.temperature for row in params], logits)


def _filter(logits: torch.Tensor, params: Sequence[SamplingParams]) -> torch.Tensor:
    """Logits with minus infinity for the tokens that may not be drawn; the most likely token always may."""
    vocabulary = logits.shape[-1]
    plain = [not row.filters for row in params]
    min_p = _column([0.0 if off else row.min_p for row, off in zip(params, plain, strict=True)], logits)
    top_p = _column([1.0 if off else row.top_p for row, off in zip(params, plain, strict=True)], logits)
    limits = [vocabulary if off or row.top_k < 1 else row.top_k for row, off in zip(params, plain, strict=True)]
    ordered, index = logits.sort(dim=-1, descending=True, stable=True)
    probs = ordered.softmax(-1)
    ranks = torch.arange(vocabulary, device=logits.device)[None]
    dropped = (probs < min_p * probs[:, :1]) | (ranks >= _column(limits, logits))
    ordered = ordered.masked_fill(dropped, -torch.inf)
    probs = ordered.softmax(-1)
    # What comes before a token already reaches top_p. Rows without top_p are left out: sums can round to above 1.
    before = probs.cumsum(-1) - probs
    ordered = ordered.masked_fill((before >= top_p) & (top_p < 1) & (ranks > 0), -torch.inf)
    return torch.empty_like(logits).scatter_(-1, index, ordered)


def _pick(log_probs: torch.Tensor, params: Sequence[SamplingParams], numbers: Sequence[float]) -> torch.Tensor:
    likeliest = log_probs.argmax(-1, keepdim=True)
    if all(row.greedy for row in params):
        return likeliest[:, 0]
    probs = log_probs.exp()
    cumulated = probs.cumsum(-1)
    target = _column(numbers, log_probs) * cumulated[:, -1:]
    found = torch.searchsorted(cumulated, target, right=True).clamp(max=log_probs.shape[-1] - 1)
    # A parallel sum need not rise monotonically in its last bit: never take a token that has no probability.
    greedy = torch.tensor([row.greedy for row in params]).to(log_probs.device)[:, None]
    impossible = probs.gather(-1, found) == 0
    return torch.where(greedy | impossible, likeliest, found)[:, 0]
