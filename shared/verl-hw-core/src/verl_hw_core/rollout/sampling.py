# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""How an answer is drawn: a request's sampling parameters, the seed of its random numbers, from logits to tokens.

A run repeats whatever shares a batch with a request: each request draws one number a token from a generator of its own,
on the host, so that the device, its random state and the other requests of the batch do not matter. The generator's
seed is

- the request's ``seed``, if it has one;
- otherwise a hash of ``rollout.seed``, the step whose weights are in use, the prompt, and how many requests with this
  prompt and these parameters came before in this step.

The count is kept by one actor for all replicas: which replica serves a request, and in which order requests arrive, may
change from run to run, but the answers to a prompt are the same set. What remains are rounding errors of the logits,
which change with the shape of a batch and decide where a number falls within about 1e-7 of a token's boundary.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

import torch

from verl_hw_core.errors import SamplingParameterError


@dataclass(frozen=True)
class SamplingParams:
    """How one answer is drawn. Names and meanings are vLLM's, which verl passes on.

    Attributes:
        max_tokens: Longest answer.
        temperature: 0 takes the most likely token.
        top_p: Keep the smallest set of most likely tokens whose probability reaches this.
        top_k: Keep this many tokens; 0 or -1 keeps all.
        min_p: Keep tokens at least this probable relative to the most likely one.
        repetition_penalty: Above 1 makes tokens of the prompt and of the answer less likely.
        stop: Texts that end the answer; the tokens that complete one are part of it.
        stop_token_ids: Tokens that end the answer, under ignore_eos too.
        ignore_eos: Go on after the model's end tokens.
        logprobs: Return the log-probability of each token.
        seed: Draws depend on this alone; otherwise see the module.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    ignore_eos: bool = False
    logprobs: bool = False
    seed: int | None = None

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is taken."""
        return self.temperature == 0

    @property
    def filters(self) -> bool:
        """Whether only a part of the tokens may be drawn."""
        return not self.greedy and (self.top_p < 1 or self.top_k > 0 or self.min_p > 0)


def parse(given: Mapping[str, Any], *, max_tokens: int, room: int, ignore_eos: bool = False) -> SamplingParams:
    """Read the sampling parameters of a request, whose names are verl's and vLLM's.

    Args:
        given: The parameters by name. One that is None counts as not given.
        max_tokens: Longest answer when the request sets none.
        room: Tokens that fit behind the prompt; a longer answer is cut to it.
        ignore_eos: What counts when the request does not say.

    Raises:
        SamplingParameterError: A name is not supported or a value cannot be right; the text names it.
    """
    values = {name: value for name, value in given.items() if value is not None}
    _refuse_unknown(values)
    stop = values.get("stop", ())
    wanted = values.get("max_tokens", values.get("max_new_tokens", max_tokens))
    params = SamplingParams(
        max_tokens=max(1, min(int(wanted), room)),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        stop_token_ids=frozenset(int(token) for token in values.get("stop_token_ids", ())),
        ignore_eos=bool(values.get("ignore_eos", ignore_eos)),
        logprobs=values.get("logprobs", False) is not False,
        **{name: number(values[name]) for name, number in _NUMBERS.items() if name in values},
    )
    _check(params)
    return params


_NAMES = (
    "max_tokens", "max_new_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "stop",
    "stop_token_ids", "ignore_eos", "logprobs", "seed", "n",
)  # fmt: skip
_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "temperature": float, "top_p": float, "top_k": int, "min_p": float, "repetition_penalty": float, "seed": int,
}  # fmt: skip


def _refuse_unknown(values: Mapping[str, Any]) -> None:
    unknown = sorted(set(values) - set(_NAMES))
    if unknown:
        raise SamplingParameterError(
            f"sampling parameters {', '.join(unknown)} are not supported by the bring-up rollout; it knows "
            f"{', '.join(_NAMES)}"
        )
    if values.get("n", 1) != 1:
        raise SamplingParameterError(f"n={values['n']}: send as many requests instead, as verl's agent loop does")


def _check(params: SamplingParams) -> None:
    for fits, text in (
        (params.temperature >= 0, f"temperature={params.temperature} must not be negative"),
        (0 < params.top_p <= 1, f"top_p={params.top_p} must be above 0 and at most 1"),
        (params.top_k >= -1, f"top_k={params.top_k} must be positive, or 0 or -1 for all tokens"),
        (0 <= params.min_p <= 1, f"min_p={params.min_p} must be between 0 and 1"),
        (params.repetition_penalty > 0, f"repetition_penalty={params.repetition_penalty} must be positive"),
        (all(params.stop), "stop holds an empty text"),
    ):
        if not fits:
            raise SamplingParameterError(text)


def prompt_key(prompt_ids: Sequence[int], params: SamplingParams) -> str:
    """Name of a prompt with its sampling parameters."""
    settings = asdict(params) | {"stop_token_ids": sorted(params.stop_token_ids)}
    return sha256(json.dumps([list(prompt_ids), settings]).encode()).hexdigest()


def request_seed(rollout_seed: int, step: int | None, key: str, occurrence: int) -> int:
    """Seed of the request that is number ``occurrence`` with this key in this step."""
    digest = sha256(json.dumps([rollout_seed, step, key, occurrence]).encode()).digest()
    return int.from_bytes(digest[:8], "big")


class PromptCounter:
    """Counts the requests of each prompt and step, for all replicas of a run. Runs as a Ray actor."""

    def __init__(self) -> None:
        self._counts: dict[int | None, Counter[str]] = {}

    def next(self, step: int | None, key: str) -> int:
        """Return how often the key was asked for in this step before."""
        counts = self._counts.setdefault(step, Counter())
        while len(self._counts) > 8:  # asynchronous trainers have requests of a few steps in flight
            del self._counts[next(iter(self._counts))]
        counts[key] += 1
        return counts[key] - 1


def counting(counter: Any) -> Callable[[int | None, str], Any]:
    """Return how a :class:`PromptCounter` that runs as a Ray actor is asked.

    Through its handle each time: the methods of a handle do not keep the actor alive in Ray 2.41.
    """
    return lambda step, key: counter.next.remote(step, key)


def draw(
    logits: torch.Tensor,
    params: Sequence[SamplingParams],
    numbers: Sequence[float],
    seen: torch.Tensor | None,
    *,
    raw_log_probs: bool = False,
) -> tuple[list[int], list[float]]:
    """Draw one token a row, every row by its own parameters and its own random number.

    The order of the steps is vLLM's: repetition penalty, temperature, min-p, top-k, top-p. A token is the first whose
    cumulated probability exceeds the row's number, so that one number, drawn on the host, decides it on any device.

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
