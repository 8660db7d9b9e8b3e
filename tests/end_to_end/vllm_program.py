# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's client of vLLM on the chosen platform, and a real vLLM engine on CPU with verl's worker in it; without Ray.

Usage: ``python vllm_program.py MODEL_FOLDER OUT``; writes what was seen to OUT as JSON (stdout has vLLM's log).
"""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ray
import torch
from machine_speed import scaled
from safetensors.torch import load_file
from verl.plugin.platform import get_platform
from verl.workers.config import RolloutConfig
from vllm_worker import digest

JOB = "process-test"
BUCKET_MIB = 1
PROMPT = [20, 21, 22]


def adapter(rank: int) -> Any:
    """verl's client of one training rank; Ray is asked for the job's id only."""
    from verl.workers.rollout.vllm_rollout.vllm_rollout import ServerAdapter

    os.environ.update(RANK=str(rank), RAY_LOCAL_WORLD_SIZE="2")
    ray.get_runtime_context = lambda: SimpleNamespace(get_job_id=lambda: JOB)
    config = RolloutConfig(name="vllm", tensor_model_parallel_size=1, free_cache_engine=False)
    return ServerAdapter(config, None, None)


def engine(model: Path) -> Any:
    from vllm import LLM

    return LLM(
        str(model),
        load_format="dummy",
        dtype="float32",
        enforce_eager=True,
        max_model_len=64,
        max_num_seqs=4,
        distributed_executor_backend="mp",
        worker_extension_cls="vllm_worker.Extension",
    )


def shared_memories() -> set[str]:
    """Names of those that Python, as our transfer of large weights, or verl's transfer has made."""
    return {path.name for pattern in ("psm_*", "verl_weights_*") for path in Path("/dev/shm").glob(pattern)}


def weights(model: Path, scale: float) -> dict[str, torch.Tensor]:
    return {name: one * scale for name, one in load_file(model / "model.safetensors").items()}


def merged(tensors: dict[str, torch.Tensor]) -> dict[str, str]:
    """The tensors as vLLM keeps them: query, key and value in one, gate and up in one."""
    left, found = dict(tensors), {}
    for parts, whole in ((("q", "k", "v"), "qkv"), (("gate", "up"), "gate_up")):
        for name in [name for name in left if f".{parts[0]}_proj." in name]:
            names = [name.replace(f".{parts[0]}_proj.", f".{part}_proj.") for part in parts]
            together = torch.cat([left.pop(one) for one in names])
            found[name.replace(f".{parts[0]}_proj.", f".{whole}_proj.")] = digest(together)
    return found | {name: digest(one) for name, one in left.items()}


def gap(model: Path, tensors: dict[str, torch.Tensor], answer: Any) -> float:
    """Largest difference between vLLM's log-probs of an answer and those of transformers with these tensors."""
    from transformers import AutoModelForCausalLM

    reference = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    reference.load_state_dict(tensors)
    tokens = list(answer.outputs[0].token_ids)
    with torch.no_grad():
        logits = reference(torch.tensor([[*PROMPT, *tokens]])).logits[0, len(PROMPT) - 1 : -1]
    wanted = logits.log_softmax(-1).gather(1, torch.tensor(tokens)[:, None])[:, 0].tolist()
    found = [step[token].logprob for step, token in zip(answer.outputs[0].logprobs, tokens, strict=True)]
    return max(abs(a - b) for a, b in zip(wanted, found, strict=True))


def sync(client: Any, llm: Any, tensors: dict[str, torch.Tensor]) -> None:
    """What verl's client does in its ``update_weights``, with the engine in place of the Ray actor around it."""
    from verl.workers.rollout.vllm_rollout.bucketed_weight_transfer import BucketedWeightSender

    sender = BucketedWeightSender(client.zmq_handle, BUCKET_MIB, use_shm=client.use_shm)
    on_device = ((name, one.to(get_platform().device_name)) for name, one in tensors.items())
    thread = threading.Thread(target=lambda: asyncio.run(sender.async_send_weights(on_device)), daemon=True)
    thread.start()
    llm.collective_rpc("update_weights_from_ipc", kwargs={"use_shm": client.use_shm}, timeout=scaled(60))
    thread.join(scaled(60))


def main(model: Path, out: Path) -> None:
    from vllm import SamplingParams

    platform = get_platform()
    os.environ.update(platform.rollout_env_vars(), VERL_REPLICA_RANK="0", VERL_RAY_JOB_ID=JOB)
    clients = [adapter(rank) for rank in range(2)]
    llm = engine(model)
    vllms_own = shared_memories()
    syncs = []
    for scale in (1.0, 1.25):
        tensors = weights(model, scale)
        sync(clients[0], llm, tensors)
        [found] = llm.collective_rpc("digests")
        syncs.append({"sent": merged(tensors), "found": found})
    left = shared_memories() - vllms_own
    sampling = SamplingParams(max_tokens=8, ignore_eos=True, logprobs=0)
    [answer] = llm.generate([{"prompt_token_ids": PROMPT}], sampling, use_tqdm=False)
    facts = {
        "largest": max(one.nbytes for one in tensors.values()),
        "platform": platform.vendor_name,
        "uuids": [platform.get_device_uuid(number) for number in range(platform.device_count())],
        "pid": os.getpid(),
        "handles": [client.zmq_handle for client in clients],
        "shared": [client.use_shm for client in clients],
        "worker": llm.collective_rpc("process")[0],
        "wanted environment": platform.rollout_env_vars(),
        "syncs": syncs,
        "gap": gap(model, tensors, answer),
        "gap of the first weights": gap(model, weights(model, 1.0), answer),
        "tokens": len(answer.outputs[0].token_ids),
        "left in /dev/shm": sorted(left & shared_memories()),  # those of a test beside this one go again
    }
    out.write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
