# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The sampling loop: one batch of requests through a Hugging Face model with a key-value cache.

The loop is our own and not ``generate``: there one set of sampling parameters and one random state serve a whole batch,
so that an answer would depend on its neighbours, and requests of different kinds could not share one.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch

from verl_hw_core.errors import GenerationError
from verl_hw_core.rollout.batching import Request, decode, first_stop
from verl_hw_core.rollout.sampling import draw


@dataclass(eq=False)
class Generator:
    """Generates with one model.

    Attributes:
        model: A causal language model of transformers, in evaluation mode.
        tokenizer: Needed for stop texts.
        eos_token_ids: The model's end tokens.
        pad_token_id: Any valid token; padding is masked.
        raw_log_probs: See :func:`verl_hw_core.rollout.sampling.draw`.
    """

    model: Any
    tokenizer: Any
    eos_token_ids: frozenset[int]
    pad_token_id: int
    _: KW_ONLY
    raw_log_probs: bool = False

    def generate(self, batch: Sequence[Request], device: torch.device) -> None:
        """Fill in the answers of all requests, or of each until it is aborted.

        Raises:
            GenerationError: The model's output for a request is not finite.
        """
        rows = [request for request in batch if not request.aborted]
        if rows:
            with torch.inference_mode():
                self._generate(rows, device)

    def _generate(self, rows: list[Request], device: torch.device) -> None:
        ids, mask = self._padded(rows, device)
        seen = self._seen(rows, ids, mask)
        cache = None
        while rows:
            logits, cache = self._forward(ids, mask, cache)
            numbers = [request.numbers.random() for request in rows]
            params = [request.params for request in rows]
            tokens, log_probs = draw(logits, params, numbers, seen, raw_log_probs=self.raw_log_probs)
            for request, token, log_prob in zip(rows, tokens, log_probs, strict=True):
                _append(request, token, log_prob)
            ids = torch.tensor(tokens).to(device)[:, None]
            mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=-1)
            if seen is not None:
                seen.scatter_(-1, ids, True)
            for request in rows:
                request.complete = self._ended(request)
            kept = [index for index, request in enumerate(rows) if not (request.complete or request.aborted)]
            if len(kept) < len(rows):
                rows = [rows[index] for index in kept]
                ids, mask, seen = _select(torch.tensor(kept, dtype=torch.long).to(device), cache, ids, mask, seen)

    def _padded(self, rows: Sequence[Request], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Prompts padded on the left, and their mask, both (rows, longest prompt)."""
        longest = max(len(request.prompt_ids) for request in rows)
        missing = [longest - len(request.prompt_ids) for request in rows]
        ids = [[self.pad_token_id] * gap + request.prompt_ids for request, gap in zip(rows, missing, strict=True)]
        mask = [[0] * gap + [1] * len(request.prompt_ids) for request, gap in zip(rows, missing, strict=True)]
        return torch.tensor(ids).to(device), torch.tensor(mask).to(device)

    def _seen(self, rows: Sequence[Request], ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor | None:
        if all(request.params.repetition_penalty == 1 for request in rows):
            return None
        vocabulary = self.model.get_input_embeddings().num_embeddings
        counts = torch.zeros((len(rows), vocabulary), dtype=torch.long, device=ids.device)
        return counts.scatter_add_(-1, ids, mask) > 0

    def _forward(self, ids: torch.Tensor, mask: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        """Logits (rows, vocabulary) behind the last token, and the cache."""
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[-1] :]  # as verl's trainer counts them
        output = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1], output.past_key_values

    def _ended(self, request: Request) -> bool:
        params, last = request.params, request.token_ids[-1]
        return (
            len(request.token_ids) >= params.max_tokens
            or last in params.stop_token_ids
            or (last in self.eos_token_ids and not params.ignore_eos)
            or (bool(params.stop) and first_stop(decode(self.tokenizer, request.token_ids), params.stop))
        )


def _append(request: Request, token: int, log_prob: float) -> None:
    if not math.isfinite(log_prob):
        raise GenerationError(
            f"request {request.request_id}: token {len(request.token_ids)} has the log-probability {log_prob}. The "
            "weights, or an operation of this device, give numbers that are not finite: verl-hw check tests the "
            "operations"
        )
    request.token_ids.append(token)
    if request.params.logprobs:
        request.log_probs.append(log_prob)


def _select(index: torch.Tensor, cache: Any, *tensors: torch.Tensor | None) -> list[Any]:
    """Keep these rows of the cache, in place, and of the tensors."""
    if len(index):
        cache.batch_select_indices(index)
    return [None if tensor is None else tensor[index] for tensor in tensors]
