# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Generate with the bring-up rollout on whatever platform this process resolves, and write the answers down as JSON.

Usage: ``python rollout_program.py MODEL_FOLDER OUT_FILE``. The model is built from verl's own configuration classes and
filled through the buckets of a weight sync; beside each answer stand the log-probs of one forward on the host.
"""

import asyncio
import json
import random
import sys
import time
from functools import partial
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM
from verl.plugin.platform import get_platform
from verl.workers.config import CheckpointEngineConfig, HFModelConfig, PrometheusConfig, RolloutConfig
from verl.workers.rollout.utils import ensure_async_iterator

from verl_hw_core.errors import VerlHwError
from verl_hw_core.rollout.actor import _device, build_model
from verl_hw_core.rollout.batching import Request
from verl_hw_core.rollout.replica import BringupReplica
from verl_hw_core.rollout.sampling import parse
from verl_hw_core.rollout.settings import check_config, read_settings
from verl_hw_core.rollout.weights import buckets

PROMPTS = [list(range(20, 20 + length)) for length in (1, 4, 5, 11)]
KINDS = {
    "plain": {"temperature": 1.0},
    "warm": {"temperature": 0.7},
    "filtered": {"temperature": 1.0, "top_p": 0.9, "top_k": 50},
    "penalty": {"temperature": 1.0, "repetition_penalty": 1.2, "min_p": 0.01},
    "greedy": {"temperature": 0},
}
SPEED_ROWS, SPEED_TOKENS = 32, 64


def rollout_config(**changes) -> RolloutConfig:
    values = {"name": "hf_bringup", "dtype": "float32", "tensor_model_parallel_size": 1, "max_model_len": 256}
    return RolloutConfig(**{**values, **changes})


def requests(given: dict, tokens: int = 16, prompts=PROMPTS) -> list[Request]:
    params = parse({"logprobs": True, "ignore_eos": True, **given}, max_tokens=tokens, room=200)
    return [
        Request(str(index), list(one), params, random.Random(index))  # noqa: S311 - sampling, no secret
        for index, one in enumerate(prompts)
    ]


async def fill(model, tensors, limit: int) -> int:
    """A weight sync; the tensors lie on the accelerator, as a trainer's do."""
    model.begin_sync()
    async for bucket in buckets(ensure_async_iterator(iter(tensors)), limit):
        model.load(bucket)
    return model.finish_sync()


def host_log_probs(module, request: Request) -> list[float]:
    ids = torch.tensor([request.prompt_ids + request.token_ids])
    start = len(request.prompt_ids)
    with torch.no_grad():
        logits = module(ids).logits / (request.params.temperature or 1.0)
    return logits.log_softmax(-1)[0, start - 1 : -1].gather(-1, ids[0, start:, None])[:, 0].tolist()


def refusals(model_config) -> dict[str, str]:
    """What is said to settings that cannot work, and to uses that verl has for other rollouts."""
    cases = {
        "tensor_model_parallel_size": (rollout_config(tensor_model_parallel_size=2), model_config),
        "data_parallel_size": (rollout_config(data_parallel_size=2), model_config),
        "logprobs_mode": (rollout_config(logprobs_mode="raw_logits"), model_config),
        "load_format": (rollout_config(load_format="gguf"), model_config),
        "quantization": (rollout_config(quantization="fp8"), model_config),
        "qat": (rollout_config(qat={"enable": True}), model_config),
        "pipeline_model_parallel_size": (rollout_config(pipeline_model_parallel_size=2), model_config),
        "enable_rollout_routing_replay": (rollout_config(enable_rollout_routing_replay=True), model_config),
        "prometheus.enable": (rollout_config(prometheus=PrometheusConfig(enable=True)), model_config),
        "rollout.temperature=0": (rollout_config(do_sample=False), model_config),
        "repetition_penalty": (rollout_config(repetition_penalty=1.2), model_config),
        "lora.merge": (rollout_config(), {"lora_rank": 8}),
        "checkpoint_engine.backend": (
            rollout_config(checkpoint_engine=CheckpointEngineConfig(backend="delta_sharded")),
            model_config,
        ),
        "no windows": (rollout_config(engine_kwargs={"hf_bringup": {"windows": 1}}), model_config),
        "hf_bringup.device": (rollout_config(engine_kwargs={"hf_bringup": {"device": "tpu"}}), model_config),
    }
    replica = partial(BringupReplica, 0, rollout_config(), model_config, 1)
    uses = {
        "reward_model.rollout.name": partial(replica, is_reward_model=True),
        "distillation.teacher_models": partial(replica, is_teacher_model=True),
    }
    checks = {name: partial(check_config, *case) for name, case in cases.items()}
    return {name: said_by(function) for name, function in {**checks, **uses}.items()}


def said_by(function) -> str:
    try:
        function()
    except VerlHwError as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def main(folder: Path, out: Path) -> None:
    torch.set_num_threads(1)
    platform = get_platform()
    model_config = HFModelConfig(path=str(folder), override_config={"attn_implementation": "sdpa"})
    rollout = rollout_config()
    check_config(rollout, model_config)
    check_config(rollout, {"lora_rank": 8, "lora": {"merge": True}})
    device = _device(read_settings(rollout), 1 if platform.device_count() > 1 else 0)
    module = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa").float().eval()
    model = build_model(rollout, model_config, device)
    tensors = [(name, tensor.to(device)) for name, tensor in module.state_dict().items()]
    facts = {"device": str(device), "tensors": asyncio.run(fill(model, tensors, 10_000))}
    facts["parameters_on"] = sorted({str(one.device) for one in model._module.parameters()})
    answers = {}
    for kind, given in KINDS.items():
        batch = requests(given)
        model.generate(batch)
        answers[kind] = [[one.token_ids, one.log_probs, host_log_probs(module, one)] for one in batch]
    model.sleep(1)
    model.wake()
    again = requests(KINDS["plain"])
    model.generate(again)
    facts["after_sleep"] = [one.token_ids for one in again]
    timed = requests({}, SPEED_TOKENS, [[20, 21, 22]] * SPEED_ROWS)
    begun = time.monotonic()
    model.generate(timed)
    facts["tokens_per_second"] = SPEED_ROWS * SPEED_TOKENS / (time.monotonic() - begun)
    loaded = build_model(rollout_config(load_format="safetensors"), model_config, device)
    batch = requests(KINDS["plain"])
    loaded.generate(batch)
    facts["loaded"] = [one.token_ids for one in batch]
    out.write_text(json.dumps({**facts, "answers": answers, "refusals": refusals(model_config)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
