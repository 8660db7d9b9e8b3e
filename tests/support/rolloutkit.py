# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A tiny random model behind the bring-up rollout, without verl and without Ray."""

import asyncio
import random
from types import SimpleNamespace

import torch
from machine_speed import scaled
from transformers import Qwen2Config, Qwen2ForCausalLM

from verl_hw_core.rollout.batching import Request
from verl_hw_core.rollout.generation import Generator
from verl_hw_core.rollout.model import BringupModel
from verl_hw_core.rollout.sampling import PromptCounter, parse
from verl_hw_core.rollout.server import BringupServer
from verl_hw_core.rollout.settings import Settings
from verl_hw_core.rollout.weights import buckets

VOCABULARY = 64
EOS = frozenset({3, 5})
CPU = torch.device("cpu")


class Letters:
    """A tokenizer whose token n is one letter."""

    def decode(self, token_ids, skip_special_tokens):
        assert skip_special_tokens
        return "".join(chr(0x100 + token) for token in token_ids)


def tiny_module(seed=0, *, tied=False, layers=2):
    """A Qwen2 whose distributions are far from flat, so that parameters of sampling matter."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=tied,
    )  # fmt: skip
    module = Qwen2ForCausalLM._from_config(config, attn_implementation="sdpa").eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(4)
    return module


def tiny_model(seed=0, *, loaded=True, module=None, dtype=torch.float32, raw_log_probs=False):
    def generator(built):
        return Generator(built, Letters(), EOS, 0, raw_log_probs=raw_log_probs)

    return BringupModel(module or tiny_module(seed), dtype, CPU, generator, lambda: None, loaded=loaded)


def request(prompt, seed=0, name="r", **given):
    params = parse({"logprobs": True, **given}, max_tokens=12, room=100)
    return Request(name, list(prompt), params, random.Random(seed))  # noqa: S311 - sampling, no secret


def trainer_log_probs(module, asked, temperature=1.0):
    """What verl's trainer computes for an answer: one forward over the whole sequence, logits over temperature."""
    ids = torch.tensor([asked.prompt_ids + asked.token_ids])
    with torch.no_grad():
        log_probs = (module(ids).logits.float() / temperature).log_softmax(-1)
    start = len(asked.prompt_ids)
    return log_probs[0, start - 1 : -1].gather(-1, ids[0, start:, None])[:, 0].tolist()


def rollout_config(**changes):
    """The part of verl's RolloutConfig that the server reads."""
    values = {
        "max_model_len": 128, "prompt_length": 32, "response_length": 12, "repetition_penalty": 1.0,
        "ignore_eos": False, "seed": 42, "max_num_seqs": 64,
    }  # fmt: skip
    return SimpleNamespace(**{**values, **changes})


def tiny_server(model, *, sleep_level=2, counter=None, **changes):
    """A server that is not launched yet."""
    counter = counter or PromptCounter()

    async def count(step, key):
        return counter.next(step, key)

    settings = {name: changes.pop(name) for name in tuple(changes) if name in Settings.__dataclass_fields__}
    return BringupServer(
        build=lambda: model,
        settings=Settings(**{"batch_window_seconds": scaled(0.002), **settings}),
        rollout=rollout_config(**changes),
        completion=SimpleNamespace,
        count=count,
        sleep_level=sleep_level,
        profiler=(lambda: None, lambda: None),
    )


async def stream(tensors):
    for item in tensors.items():
        yield item


async def all_buckets(tensors, limit):
    return [bucket async for bucket in buckets(stream(tensors), limit)]


async def sync(server, tensors, step=None, limit=20_000):
    """A whole sync through the server's own methods, as the adapter does it."""
    await server.begin_weights()
    async for bucket in buckets(stream(tensors), limit):
        await server.load_weights(bucket)
    return await server.finish_weights(step)


def served(test, server):
    """Run an asynchronous test with a launched server."""

    async def main():
        await server.launch()
        try:
            return await asyncio.wait_for(test(server), timeout=scaled(60))
        finally:
            server._batches.cancel()

    return asyncio.run(main())
