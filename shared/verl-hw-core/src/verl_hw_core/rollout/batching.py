# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Requests on their way to a batch: which are let in, which wait, and which make the next one."""

import asyncio
import random
from asyncio import Future
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from verl_hw_core.rollout.sampling import SamplingParams


@dataclass(eq=False)
class Request:
    """One request for one answer, and the answer so far.

    Attributes:
        request_id: The caller's name of it.
        prompt_ids: Tokens of the prompt.
        params: Sampling parameters.
        numbers: Source of the request's random numbers, one a token.
        done: Set when the answer is complete.
        aborted: Set by another thread to end the answer where it is.
        complete: The answer ended by itself; a later abort has no effect on it.
        token_ids: The answer's tokens.
        log_probs: Their log-probabilities, where asked for.
    """

    request_id: str
    prompt_ids: list[int]
    params: SamplingParams
    numbers: random.Random
    done: "Future[None] | None" = None
    aborted: bool = False
    complete: bool = False
    token_ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)

    @property
    def longest(self) -> int:
        """Tokens of the prompt and the longest possible answer."""
        return len(self.prompt_ids) + self.params.max_tokens


def take_batch(waiting: "deque[Request]", *, max_sequences: int, max_padded_tokens: int) -> list[Request]:
    """Remove the next batch from the queue: in order of arrival, as many as both bounds allow, at least one.

    Requests with different sampling parameters share a batch, since every row is drawn by its own.

    Args:
        waiting: Requests in order of arrival.
        max_sequences: Most requests in a batch.
        max_padded_tokens: Most rows times longest row of a batch; a single request may exceed it.
    """
    batch: list[Request] = []
    longest = 0
    while waiting and len(batch) < max_sequences:
        longest = max(longest, waiting[0].longest)
        if batch and (len(batch) + 1) * longest > max_padded_tokens:
            break
        batch.append(waiting.popleft())
    return batch


def first_stop(text: str, stops: tuple[str, ...]) -> bool:
    """Whether the text holds one of the stop texts."""
    return any(stop in text for stop in stops)


def decode(tokenizer: Any, token_ids: list[int]) -> str:
    """Text of an answer, without special tokens, as vLLM compares stop texts with it."""
    return str(tokenizer.decode(token_ids, skip_special_tokens=True))


class Gate:
    """The door that requests go through: closed by an abort, it keeps late ones waiting or turns them away.

    Open at first. Used from one event loop.
    """

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self._rejecting = False

    @property
    def is_open(self) -> bool:
        """Whether requests may pass."""
        return self._opened.is_set()

    def close(self, *, reject: bool) -> None:
        """Let no request pass until :meth:`open`; with ``reject``, turn them away instead of keeping them."""
        self._rejecting = reject
        if self.is_open or reject:
            waiting, self._opened = self._opened, asyncio.Event()
            waiting.set()  # who waits looks again, and is turned away

    def open(self) -> None:
        """Let requests pass, those that wait included."""
        self._rejecting = False
        self._opened.set()

    async def admitted(self) -> bool:
        """Wait until the request may pass; False turns it away."""
        while not self._opened.is_set():
            if self._rejecting:
                return False
            await self._opened.wait()
        return True
