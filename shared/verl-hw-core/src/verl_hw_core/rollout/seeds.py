# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Where the random numbers of a request come from, so that a run repeats whatever shares a batch with it.

Each request draws one number a token from a generator of its own, on the host: the device, its random state and the
other requests of the batch do not matter. The generator's seed is

- the request's ``seed``, if it has one;
- otherwise a hash of ``rollout.seed``, the step whose weights are in use, the prompt, and how many requests with this
  prompt and these parameters came before in this step.

The count is kept by one actor for all replicas: which replica serves a request, and in which order requests arrive, may
change from run to run, but the answers to a prompt are the same set. What remains are rounding errors of the logits,
which change with the shape of a batch and decide where a number falls within about 1e-7 of a token's boundary.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256

from verl_hw_core.rollout.sampling import SamplingParams

_STEPS_KEPT = 8  # asynchronous trainers have requests of a few steps in flight


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
        while len(self._counts) > _STEPS_KEPT:
            del self._counts[next(iter(self._counts))]
        counts[key] += 1
        return counts[key] - 1
