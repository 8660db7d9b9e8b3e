# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Sampling parameters of the bring-up rollout: what is read and refused, and the distribution that is drawn from."""

import math
import weakref
from collections import Counter

import pytest

from verl_hw_core.errors import SamplingParameterError
from verl_hw_core.rollout.sampling import PromptCounter, SamplingParams, counting, parse

LOGITS = [2.0, 1.0, 0.5, 0.0, -1.0, -3.0]
DRAWS = 4000


def softmax(logits):
    weights = [math.exp(one - max(logits)) for one in logits]
    return [one / sum(weights) for one in weights]


def draws(count=DRAWS, seen=None, raw=False, **given):
    """Tokens and log-probabilities of many rows with the same logits and evenly spread numbers."""
    import torch

    from verl_hw_core.rollout.sampling import draw

    params = [SamplingParams(max_tokens=1, **given)] * count
    numbers = [(index + 0.5) / count for index in range(count)]
    logits = torch.tensor([LOGITS] * count)
    mask = None if seen is None else torch.tensor([[index in seen for index in range(len(LOGITS))]] * count)
    return draw(logits, params, numbers, mask, raw_log_probs=raw)


def shares(tokens):
    counts = Counter(tokens)
    return [counts[token] / len(tokens) for token in range(len(LOGITS))]


def agrees(tokens, log_probs, expected):
    """Frequencies are the expected ones, up to the even numbers' step, and so are the log-probabilities."""
    assert shares(tokens) == pytest.approx(expected, abs=1.5 / DRAWS)
    for token, log_prob in zip(tokens, log_probs, strict=True):
        assert log_prob == pytest.approx(math.log(expected[token]), abs=1e-5)


def renormalised(probs, kept):
    total = sum(probs[index] for index in kept)
    return [probs[index] / total if index in kept else 0.0 for index in range(len(probs))]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_temperature(temperature):
    agrees(*draws(temperature=temperature), softmax([one / temperature for one in LOGITS]))


def test_top_k_keeps_the_most_likely_tokens():
    agrees(*draws(top_k=3), renormalised(softmax(LOGITS), {0, 1, 2}))


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    probs = softmax(LOGITS)
    assert probs[0] < 0.6 < 0.75 < probs[0] + probs[1]
    agrees(*draws(top_p=0.6), renormalised(probs, {0, 1}))
    agrees(*draws(top_p=1e-6), renormalised(probs, {0}))


def test_min_p_is_relative_to_the_most_likely_token():
    probs = softmax(LOGITS)
    kept = {index for index, one in enumerate(probs) if one >= 0.2 * probs[0]}
    assert kept == {0, 1, 2}
    agrees(*draws(min_p=0.2), renormalised(probs, kept))


def test_top_p_counts_within_what_top_k_left():
    probs = renormalised(softmax(LOGITS), {0, 1})
    assert probs[0] < 0.74 < 1
    agrees(*draws(top_k=2, top_p=0.72), renormalised(probs, {0}))


def test_repetition_penalty_touches_seen_tokens_only():
    penalised = [LOGITS[0] / 2, LOGITS[1], LOGITS[2], LOGITS[3], LOGITS[4] * 2, LOGITS[5]]
    agrees(*draws(seen={0, 4}, repetition_penalty=2.0), softmax(penalised))


def test_greedy_takes_the_most_likely_token_whatever_else_is_set():
    tokens, log_probs = draws(10, temperature=0.0, top_p=0.1, top_k=4)
    assert tokens == [0] * 10
    assert log_probs == pytest.approx([math.log(softmax(LOGITS)[0])] * 10, abs=1e-6)


def test_raw_log_probs_are_those_of_the_model():
    tokens, log_probs = draws(raw=True, temperature=0.5, top_k=2)
    assert set(tokens) == {0, 1}
    for token, log_prob in zip(tokens, log_probs, strict=True):
        assert log_prob == pytest.approx(math.log(softmax(LOGITS)[token]), abs=1e-5)


def test_rows_of_one_batch_keep_their_own_parameters():
    import torch

    from verl_hw_core.rollout.sampling import draw

    rows = [
        SamplingParams(1, temperature=0.0),
        SamplingParams(1, top_k=1),
        SamplingParams(1),
        SamplingParams(1, temperature=3.0),
    ]
    numbers = [0.99, 0.99, 0.999999, 0.5]
    together, log_probs = draw(torch.tensor([LOGITS] * 4), rows, numbers, None)
    alone = [draw(torch.tensor([LOGITS]), [row], [number], None) for row, number in zip(rows, numbers, strict=True)]
    assert together == [tokens[0] for tokens, _ in alone]
    assert log_probs == pytest.approx([values[0] for _, values in alone], abs=1e-6)
    assert together[:3] == [0, 0, 5], "the third row is not filtered by its neighbours"


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
def test_a_number_at_the_edge_never_draws_an_impossible_token(number):
    import torch

    from verl_hw_core.rollout.sampling import draw

    logits = torch.tensor([[-torch.inf, 1.0, 0.0, -torch.inf]])
    tokens, _ = draw(logits, [SamplingParams(1)], [number], None)
    assert tokens[0] in (1, 2)


def test_defaults_and_none():
    params = parse({"temperature": None, "stop": "end"}, max_tokens=7, room=100)
    assert params == SamplingParams(max_tokens=7, stop=("end",))


def test_what_verl_passes_is_read():
    given = {"temperature": 0.7, "top_p": 0.9, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}
    params = parse(given, max_tokens=7, room=100)
    assert (params.temperature, params.top_p, params.top_k, params.logprobs) == (0.7, 0.9, -1, True)
    assert parse({"logprobs": 0}, max_tokens=7, room=9).logprobs, "vLLM's logprobs=0 is the drawn token's own"
    assert not parse({"logprobs": False}, max_tokens=7, room=9).logprobs


@pytest.mark.parametrize("name", ["max_tokens", "max_new_tokens"])
def test_an_answer_is_cut_to_the_room_and_has_one_token_at_least(name):
    assert parse({name: 50}, max_tokens=7, room=20).max_tokens == 20
    assert parse({name: 0}, max_tokens=7, room=20).max_tokens == 1


def test_an_unknown_parameter_is_named():
    with pytest.raises(SamplingParameterError, match="best_of, frequency_penalty"):
        parse({"frequency_penalty": 0.1, "best_of": 2, "top_p": 1.0}, max_tokens=1, room=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1),
        ("top_p", 0),
        ("top_p", 1.5),
        ("top_k", -2),
        ("min_p", 2),
        ("repetition_penalty", 0),
        ("stop", [""]),
        ("n", 2),
    ],
)
def test_a_value_that_cannot_be_right_is_named(name, value):
    with pytest.raises(SamplingParameterError, match=name):
        parse({name: value}, max_tokens=1, room=1)


class OldMethod:
    """Method of a handle of Ray 2.41, which does not keep the handle."""

    def __init__(self, handle):
        self._handle = weakref.ref(handle)

    def remote(self, *arguments):
        handle = self._handle()
        if handle is None:
            raise RuntimeError("Lost reference to actor")
        return handle.actor.next(*arguments)


class OldHandle:
    def __init__(self, actor):
        self.actor = actor

    @property
    def next(self):
        return OldMethod(self)


def test_the_counter_is_kept_by_what_asks_it():
    count = counting(OldHandle(PromptCounter()))
    assert [count(1, "a"), count(1, "a"), count(1, "b"), count(2, "a")] == [0, 1, 0, 0]
